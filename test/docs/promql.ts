import { parser } from '@prometheus-io/lezer-promql';

/** A metric that an expression reads, with the labels it matches. */
export interface Selector {
  metric: string;
  labels: string[];
}

export interface Expression {
  selectors: Selector[];
  /** Labels that it groups by. */
  grouping: string[];
}

/** @throws Error if it is no PromQL */
export function readPromql(expression: string): Expression {
  const tree = parser.parse(expression);
  const selectors: Selector[] = [];
  const grouping: string[] = [];
  const groupings: number[] = [];
  tree.iterate({
    enter({ type, from, to }) {
      const text = expression.slice(from, to);
      if (type.isError) throw new Error(`no PromQL at ${from}: ${expression}`);
      if (type.name === 'VectorSelector') selectors.push({ metric: '', labels: [] });
      if (type.name === 'GroupingLabels') groupings.push(to);
      if (type.name === 'Identifier') selectors.at(-1)!.metric = text;
      if (type.name !== 'LabelName') return;
      if (from < (groupings.at(-1) ?? -1)) grouping.push(text);
      else selectors.at(-1)!.labels.push(text);
    },
  });
  return { selectors, grouping };
}
