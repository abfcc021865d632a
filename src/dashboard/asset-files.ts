import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** A file for browsers, as text. */
export interface Asset {
  readonly body: string;
  readonly type: string;
}

const SOURCES = {
  'dashboard.css': () => path.join(import.meta.dirname, 'assets', 'dashboard.css'),
  'dashboard.js': () => path.join(import.meta.dirname, 'assets', 'dashboard.js'),
  'uplot.css': () => fromUplot('uPlot.min.css'),
  'uplot.js': () => fromUplot('uPlot.iife.min.js'),
} as const;

export type AssetName = keyof typeof SOURCES;

/**
 * The style sheets and scripts. Their names carry a hash of what is in them, so that a browser may keep them for ever
 * and still sees the new ones after an update.
 */
export class AssetFiles {
  private readonly byUrl = new Map<string, Asset>();
  private readonly urls = new Map<AssetName, string>();

  constructor() {
    for (const name of Object.keys(SOURCES) as AssetName[]) {
      const body = readFileSync(SOURCES[name](), 'utf8');
      const hash = createHash('sha256').update(body).digest('hex').slice(0, 12);
      const [stem = '', end = ''] = name.split('.');
      const url = `${stem}.${hash}.${end}`;
      const type = end === 'css' ? 'text/css' : 'text/javascript';
      this.byUrl.set(url, { body, type: `${type}; charset=utf-8` });
      this.urls.set(name, url);
    }
  }

  /** Below the dashboard's path. */
  pathOf(name: AssetName): string {
    return `assets/${this.urls.get(name) ?? name}`;
  }

  find(file: string): Asset | undefined {
    return this.byUrl.get(file);
  }
}

function fromUplot(file: string): string {
  return createRequire(import.meta.url).resolve(`uplot/dist/${file}`);
}
