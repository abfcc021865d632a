import type { JSX } from 'preact';
import { Page } from './page.js';
import { Plain } from './plain.js';
import type { Visit } from './visit.js';

export type ProblemStatus = 400 | 403 | 404 | 500;

interface ProblemProps {
  readonly visit: Visit;
  readonly status: ProblemStatus;
  readonly message: string;
}

export function Problem({ visit, status, message }: ProblemProps): JSX.Element {
  const { words, link } = visit;
  return (
    <Page visit={visit} heading={words.problem[status]}>
      <p class="trouble" role="alert">
        <Plain text={message} />
      </p>
      <p>
        <a href={link('')}>← {words.overview}</a>
      </p>
    </Page>
  );
}
