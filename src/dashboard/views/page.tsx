import type { ComponentChildren, JSX } from 'preact';
import { LANGUAGES, type DashboardLanguage } from '../language.js';
import { Plain } from './plain.js';
import type { Visit } from './visit.js';

/** The pages of the navigation, by their paths. */
const PAGES = {
  '': 'overview',
  'dead-letters': 'deadLetters',
  events: 'waiting',
  processes: 'processes',
  gates: 'gates',
} as const;

export type PageName = keyof typeof PAGES;

export interface PageProps {
  readonly visit: Visit;
  readonly heading: string;
  /** What the heading is about, e.g. an event type: untrusted. */
  readonly subject?: string;
  /** Which entry of the navigation it belongs to. */
  readonly current?: PageName;
  /** Looks again every so many seconds, at what is marked `data-live`. */
  readonly refreshSeconds?: number;
  readonly charts?: boolean;
  readonly children: ComponentChildren;
}

export function Page(props: PageProps): JSX.Element {
  const { visit, heading, subject, current, refreshSeconds, charts = false, children } = props;
  const { words, asset, title } = visit;
  return (
    <html lang={words.code}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <title>
          <Plain text={`${subject ?? heading} · ${title}`} />
        </title>
        <link rel="icon" href={ICON} />
        {charts && <link rel="stylesheet" href={asset('uplot.css')} />}
        <link rel="stylesheet" href={asset('dashboard.css')} />
        {charts && <script defer src={asset('uplot.js')} />}
        <script defer src={asset('dashboard.js')} />
      </head>
      <body data-refresh={refreshSeconds}>
        <a class="skip" href="#content">
          {words.skip}
        </a>
        <Head visit={visit} current={current} />
        <main id="content" tabIndex={-1}>
          <div class="title">
            <h1>{heading}</h1>
            {refreshSeconds !== undefined && (
              <p
                class="refresh"
                data-pause={words.pause}
                data-resume={words.resume}
                data-trouble={words.notReached}
              />
            )}
          </div>
          {children}
        </main>
      </body>
    </html>
  );
}

function Head({ visit, current }: { visit: Visit; current: PageName | undefined }): JSX.Element {
  const { words, link, rights, title } = visit;
  return (
    <header>
      <div class="bar">
        <a class="brand" href={link('')}>
          <svg viewBox="0 0 16 16" width="18" height="18" aria-hidden="true">
            <path d="M2 9v4h12V9h-3.2a2.8 2.8 0 0 1-5.6 0H2zm6-7 4 4H9.2v2.6H6.8V6H4l4-4z" />
          </svg>
          <Plain text={title} />
        </a>
        <nav aria-label={words.pages}>
          <ul>
            {(Object.keys(PAGES) as PageName[]).map((page) => (
              <li>
                <a href={link(page)} aria-current={page === current ? 'page' : undefined}>
                  {words[PAGES[page]]}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="who">
          <span class="rights">{rights === 'act' ? words.mayAct : words.readOnly}</span>
          <nav aria-label={words.languages}>
            <ul>
              {(Object.keys(LANGUAGES) as DashboardLanguage[]).map((language) => (
                <li>
                  <a
                    href={visit.inLanguage(language)}
                    lang={language}
                    hreflang={language}
                    aria-current={language === words.code ? 'true' : undefined}
                  >
                    {LANGUAGES[language].name}
                  </a>
                </li>
              ))}
            </ul>
          </nav>
        </div>
      </div>
    </header>
  );
}

/** What a form says besides its own fields. */
export function Carried({ visit }: { visit: Visit }): JSX.Element | null {
  const { chosenLanguage } = visit;
  return chosenLanguage === undefined ? null : (
    <input type="hidden" name="lang" value={chosenLanguage} />
  );
}

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#4353b3"/><path fill="#fff" d="M3 9v3.500h10V9h-2.600a2.400 2.400 0 0 1-4.800 0H3zm5-6 3 3H9v2.500H7V6H5l3-3z"/></svg>',
)}`;
