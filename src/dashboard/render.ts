import { h, type ComponentType } from 'preact';
import { renderToString } from 'preact-render-to-string';

/** A page as HTML. Whatever stands in it was escaped by the renderer: nothing here is written as HTML by hand. */
export function render<Props extends object>(page: ComponentType<Props>, props: Props): string {
  return `<!doctype html>${renderToString(h(page, props))}`;
}
