import type { AssetName } from '../asset-files.js';
import type { DashboardRights } from '../credentials.js';
import type { DashboardLanguage } from '../language.js';
import type { Link } from '../link.js';
import type { Words } from '../words.js';

/** What every page has to know of the request it answers. */
export interface Visit {
  readonly title: string;
  readonly words: Words;
  readonly rights: DashboardRights;
  readonly link: Link;
  readonly asset: (name: AssetName) => string;
  /** This page in another language. */
  readonly inLanguage: (language: DashboardLanguage) => string;
  /** The language that was chosen on the page: forms carry it along. */
  readonly chosenLanguage: DashboardLanguage | undefined;
  /** `undefined`: the viewer's own. */
  readonly timeZone: string | undefined;
  readonly now: Date;
}
