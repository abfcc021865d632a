import type { Screen } from './screen.js';
import { count } from './units.js';

const WIDTH = 24;

/** How far long work has come, in one line on a terminal. */
export class Progress {
  constructor(
    private readonly screen: Screen,
    private readonly what: string,
  ) {}

  show(done: number, total: number): void {
    const part = total === 0 ? 1 : Math.min(1, done / total);
    const full = Math.round(part * WIDTH);
    this.screen.passing(
      `${this.what} ${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${count(done)} of ${count(total)}`,
    );
  }

  end(): void {
    this.screen.passing('');
  }
}
