import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];
type Actor = 'client' | 'app' | 'gateway' | 'demo';

const ACTOR_STYLE: Record<Actor, Style> = {
  client: 'blue',
  app: 'cyan',
  gateway: 'magenta',
  demo: 'dim',
};

const WIDTH = Math.min(Math.max(process.stdout.columns || 100, 60), 110);
const INDENT = ' '.repeat(4);
/** Where it is told what an actor did: after the time and the actor. */
const DEED = ' '.repeat(21);

const UUID = /\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

const coloured = process.stdout.isTTY && !process.env['NO_COLOR'];

/** Prints what happens as it happens. */
export class Narrator {
  private readonly startedAt = performance.now();
  private silent = false;

  /** @param shortIds only the first block of an id: enough to tell them apart, too little to copy */
  constructor(private readonly shortIds: boolean) {}

  /** The story is over: what still happens while it is cleared away is of no interest. */
  fallSilent(): void {
    this.silent = true;
  }

  title(text: string): void {
    this.print(paint('bold', text));
  }

  chapter(number: number, title: string): void {
    this.print(`\n${paint('bold', `${number}  ${title}`)}`);
  }

  /** What follows and why, in a sentence or two. */
  text(text: string): void {
    this.block(text, 'dim');
  }

  /** Somebody did something, now. */
  line(actor: Actor, text: string): void {
    const time = `${this.elapsedSeconds().toFixed(1)}s`.padStart(9);
    const who = actor.padEnd(DEED.length - time.length - 2);
    this.deed(`${paint('dim', time)}  ${paint(ACTOR_STYLE[actor], who)}`, text);
  }

  /** Something that was checked and holds. */
  holds(what: string, value: unknown): void {
    this.deed(`${DEED.slice(4)}${paint('green', 'ok')}  `, `${what}: ${String(value)}`);
  }

  table(rows: readonly (readonly string[])[]): void {
    const widths = (rows[0] ?? []).map((_, column) =>
      Math.max(...rows.map((row) => row[column]?.length ?? 0)),
    );
    const [head = '', ...lines] = rows.map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return column === 0 ? cell.padEnd(width) : cell.padStart(width + 3);
        })
        .join(''),
    );
    this.print(INDENT + paint('bold', head));
    for (const line of ['-'.repeat(head.length), ...lines]) this.print(INDENT + line);
  }

  good(text: string): void {
    this.block(text, 'green');
  }

  bad(text: string): void {
    this.block(text, 'red');
  }

  gap(): void {
    this.print('');
  }

  /** As it is. */
  raw(text: string): void {
    this.print(text);
  }

  elapsedSeconds(): number {
    return (performance.now() - this.startedAt) / 1_000;
  }

  private print(line: string): void {
    if (!this.silent) process.stdout.write(`${line}\n`);
  }

  private block(text: string, style: Style): void {
    for (const line of this.wrapped(text, WIDTH - INDENT.length))
      this.print(paint(style, INDENT + line));
  }

  private deed(head: string, text: string): void {
    const lines = this.wrapped(text, WIDTH - DEED.length);
    for (const [index, line] of lines.entries()) this.print((index === 0 ? head : DEED) + line);
  }

  private wrapped(text: string, width: number): string[] {
    const lines: string[] = [];
    let line = '';
    for (const word of text.replaceAll(UUID, this.shortIds ? '$1' : '$&').split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line);
        line = word;
      } else line = line === '' ? word : `${line} ${word}`;
    }
    return [...lines, line];
  }
}

function paint(style: Style, text: string): string {
  return coloured ? styleText(style, text, { validateStream: false }) : text;
}
