import { english, type Words } from './words.js';
import { korean } from './words-ko.js';

export type DashboardLanguage = 'en' | 'ko';

export const LANGUAGES: Readonly<Record<DashboardLanguage, Words>> = { en: english, ko: korean };

export function isLanguage(text: unknown): text is DashboardLanguage {
  return text === 'en' || text === 'ko';
}

/** The first of ours that the browser's `Accept-Language` names; English if none. */
export function preferredLanguage(acceptLanguage: string | undefined): DashboardLanguage {
  const wishes = (acceptLanguage ?? '').split(',').map((wish) => {
    const [tag = '', ...parameters] = wish.trim().toLowerCase().split(';');
    const quality = parameters.map((each) => /^\s*q=([\d.]+)$/.exec(each)?.[1]).find(Boolean);
    return { language: tag.split('-')[0], weight: Number(quality ?? 1) };
  });
  const [best] = wishes
    .filter(({ language, weight }) => isLanguage(language) && weight > 0)
    .toSorted((a, b) => b.weight - a.weight);
  return isLanguage(best?.language) ? best.language : 'en';
}
