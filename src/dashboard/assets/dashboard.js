// @ts-check
/*
 * What the dashboard does with JavaScript. Without it every page works as well: this puts times into the viewer's own
 * zone, looks again by itself, draws the charts, ticks boxes, and goes through the steps of a large redrive.
 */
'use strict';

(() => {
  const language = document.documentElement.lang;

  showTimes(document);
  selection();
  steps();
  const charts = drawCharts();
  refreshing(charts);

  /** @param {ParentNode} within */
  function showTimes(within) {
    for (const time of within.querySelectorAll('time[data-local]')) {
      const moment = new Date(time.getAttribute('datetime') ?? '');
      /** @type {Intl.DateTimeFormatOptions} */
      const format =
        time.getAttribute('data-local') === 'short'
          ? { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
          : { dateStyle: 'medium', timeStyle: 'medium' };
      time.textContent = new Intl.DateTimeFormat(language, format).format(moment);
    }
  }

  /** Ticks all boxes, and says how many are ticked. */
  function selection() {
    const form = document.querySelector('form[data-selection]');
    const all = form?.querySelector('input[data-select-all]');
    const told = form?.querySelector('[data-selected]');
    if (!(form instanceof HTMLFormElement) || !(all instanceof HTMLInputElement) || !told) return;
    const boxes = () =>
      /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll('input[name="id"]')]);
    const tell = () => {
      const ticked = boxes().filter((box) => box.checked).length;
      all.checked = ticked > 0 && ticked === boxes().length;
      all.indeterminate = ticked > 0 && !all.checked;
      told.textContent =
        ticked === 0
          ? ''
          : (told.getAttribute('data-selected') ?? '').replace(
              '{}',
              ticked.toLocaleString(language),
            );
    };
    all.closest('label')?.removeAttribute('hidden');
    all.addEventListener('change', () => {
      for (const box of boxes()) box.checked = all.checked;
      tell();
    });
    form.addEventListener('change', tell);
    // The browser restores ticks when somebody comes back.
    window.addEventListener('pageshow', tell);
    tell();
  }

  /** One request a step; a step that fails can be taken again. */
  function steps() {
    const form = document.querySelector('form[data-steps]');
    if (!(form instanceof HTMLFormElement)) return;
    // Not form.action: that is the field of this name.
    const target = new URL(form.getAttribute('action') ?? '', location.href);
    const button = form.querySelector('button[type="submit"]');
    const bar = form.querySelector('progress');
    const text = form.querySelector('[data-progress-text]');
    const failure = form.querySelector('[data-failure]');
    const cancel = form.querySelector('[data-cancel]');
    const done = form.querySelector('input[name="done"]');
    if (!(button instanceof HTMLButtonElement) || !(done instanceof HTMLInputElement)) return;
    if (!bar || !text || !(failure instanceof HTMLElement) || !cancel) return;

    /** @returns {Promise<{ done: number, total: number, finished: boolean, after: string }>} */
    const step = async () => {
      const body = new URLSearchParams();
      for (const [name, value] of new FormData(form)) {
        if (typeof value === 'string') body.append(name, value);
      }
      const headers = { Accept: 'application/json' };
      const response = await fetch(addressOf(target.href), { method: 'POST', headers, body });
      const type = response.headers.get('content-type') ?? '';
      const answer = type.startsWith('application/json') ? await response.json() : {};
      if (response.ok) return answer;
      throw new Error(answer.failure ?? `HTTP ${response.status}`);
    };

    /** @param {number} count @param {number} total */
    const show = (count, total) => {
      done.value = String(count);
      bar.value = count;
      text.textContent = (form.getAttribute('data-progress') ?? '')
        .replace('{done}', count.toLocaleString(language))
        .replace('{total}', total.toLocaleString(language));
    };

    const run = async () => {
      try {
        for (;;) {
          const { finished, after, ...state } = await step();
          show(state.done, state.total);
          if (!finished) continue;
          location.assign(new URL(after, target));
          return;
        }
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        failure.textContent = `${form.getAttribute('data-failed')} ${why}`;
        failure.hidden = false;
        button.disabled = false;
        button.textContent = form.getAttribute('data-continue');
      }
    };

    form.addEventListener('submit', (event) => {
      event.preventDefault();
      button.disabled = true;
      failure.hidden = true;
      bar.parentElement?.removeAttribute('hidden');
      cancel.textContent = form.getAttribute('data-stop');
      void run();
    });
  }

  /** Looks at the same page again, and takes over the parts that may have changed. @param {() => void} drawAgain */
  function refreshing(drawAgain) {
    const seconds = Number(document.body.dataset['refresh']);
    const place = document.querySelector('.refresh');
    if (!(seconds > 0) || !(place instanceof HTMLElement)) return;

    let paused = false;
    const said = document.createElement('span');
    said.setAttribute('role', 'status');
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'quiet';
    const label = () => {
      button.textContent = (paused ? place.dataset['resume'] : place.dataset['pause']) ?? '';
    };
    button.addEventListener('click', () => {
      paused = !paused;
      label();
    });
    label();
    place.append(said, button);
    let looking = false;
    const look = async () => {
      if (paused || looking || document.hidden) return;
      looking = true;
      try {
        const response = await fetch(addressOf(location.href), {
          headers: { Accept: 'text/html' },
        });
        if (!response.ok) throw new Error(String(response.status));
        takeOver(new DOMParser().parseFromString(await response.text(), 'text/html'));
        drawAgain();
        said.textContent = '';
      } catch {
        said.textContent = place.dataset['trouble'] ?? '';
      } finally {
        looking = false;
      }
    };
    setInterval(() => void look(), seconds * 1_000);
    document.addEventListener('visibilitychange', () => void look());
  }

  /** @param {Document} fresh */
  function takeOver(fresh) {
    showTimes(fresh);
    for (const part of document.querySelectorAll('[data-live]')) {
      const next = fresh.getElementById(part.id);
      if (!next) continue;
      for (const details of part.querySelectorAll('details')) {
        if (details.open) next.querySelector('details')?.setAttribute('open', '');
      }
      if (next.outerHTML === part.outerHTML) continue;
      // Nobody loses the focus, or a selection, under their hands.
      const chosen = document.getSelection();
      const isReading = chosen?.type === 'Range' && part.contains(chosen.anchorNode);
      if (part.contains(document.activeElement) || isReading) continue;
      part.replaceWith(document.importNode(next, true));
    }
  }

  /**
   * An address as fetch takes it: a page opened as https://name:password@host/ has relative ones with a password in
   * them, which it refuses. The browser knows the password by then.
   * @param {string} relative
   */
  function addressOf(relative) {
    const address = new URL(relative, location.href);
    address.username = '';
    address.password = '';
    return address.href;
  }

  /** @returns {() => void} draws them again, with new figures */
  function drawCharts() {
    const places = /** @type {HTMLElement[]} */ ([...document.querySelectorAll('[data-chart]')]);
    /** @type {any} */
    const uPlot = Reflect.get(window, 'uPlot');
    if (places.length === 0 || !uPlot) return () => {};
    /** @type {Map<HTMLElement, any>} */
    const drawn = new Map();
    /** @type {Record<string, number[]> | undefined} */
    let series;

    const load = async () => {
      const response = await fetch(addressOf(places[0]?.dataset['chart'] ?? ''), {
        headers: { Accept: 'application/json' },
      });
      if (!response.ok) return;
      series = await response.json();
      for (const place of places) {
        const plot = drawn.get(place);
        if (plot) plot.setData(dataFor(place));
        else draw(place);
      }
    };

    /** @param {HTMLElement} place */
    const linesOf = (place) => (place.dataset['lines'] ?? '').split(' ');
    /** @param {HTMLElement} place */
    const dataFor = (place) => ['at', ...linesOf(place)].map((line) => series?.[line]);

    /** @param {HTMLElement} place */
    const draw = (place) => {
      drawn.get(place)?.destroy();
      const style = getComputedStyle(document.documentElement);
      const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
      const colors = /** @type {Record<string, string>} */ ({
        delivered: color('accent'),
        failed: color('bad'),
        retried: color('warn'),
      });
      const names = JSON.parse(place.dataset['names'] ?? '[]');
      const zone = place.dataset['zone'];
      const clock = new Intl.DateTimeFormat(language, {
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
        ...(zone && { timeZone: zone }),
      });
      const time = (/** @type {number} */ at) => clock.format(new Date(at * 1_000));
      const grid = { stroke: color('line'), width: 1 };
      const axis = { stroke: color('soft'), grid, ticks: { show: false }, font: '12px system-ui' };
      const options = {
        width: place.clientWidth,
        height: 190,
        padding: [12, 8, 0, 0],
        cursor: { y: false, drag: { x: false, y: false } },
        scales: {
          y: {
            range: (
              /** @type {unknown} */ _,
              /** @type {number} */ __,
              /** @type {number} */ max,
            ) => [0, Math.max(1, max * 1.1)],
          },
        },
        axes: [
          {
            ...axis,
            grid: { show: false },
            size: 28,
            values: (/** @type {unknown} */ _, /** @type {number[]} */ ticks) => ticks.map(time),
          },
          // Events are counted in whole numbers.
          {
            ...axis,
            size: 46,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6],
          },
        ],
        series: [
          {
            value: (/** @type {unknown} */ _, /** @type {number | null} */ at) =>
              at === null ? '–' : time(at),
            label: place.dataset['time'] ?? '',
          },
          ...linesOf(place).map((line, i) => ({
            label: names[i],
            stroke: colors[line],
            fill: `${colors[line]}22`,
            width: 2,
            // Told apart by more than the colour.
            dash: line === 'retried' ? [6, 4] : [],
            points: { show: false },
            value: (/** @type {unknown} */ _, /** @type {number | null} */ n) =>
              n === null ? '–' : n.toLocaleString(language),
          })),
        ],
      };
      drawn.set(place, new uPlot(options, dataFor(place), place));
    };

    const drawAll = () => {
      if (series) for (const place of places) draw(place);
    };
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
    let waiting = 0;
    window.addEventListener('resize', () => {
      clearTimeout(waiting);
      waiting = setTimeout(drawAll, 150);
    });
    const reload = () => void load().catch(() => {});
    reload();
    return reload;
  }
})();
