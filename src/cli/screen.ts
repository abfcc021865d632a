import { createInterface } from 'node:readline/promises';
import { styleText } from 'node:util';
import { table, type Column } from './table.js';
import { visibleJson } from './visible-json.js';

export type Colour = 'red' | 'yellow' | 'green' | 'cyan' | 'bold' | 'dim';

/** Where the command line writes: results on stdout, everything else on stderr. */
export class Screen {
  private colours: boolean;

  constructor(
    private readonly stdin: NodeJS.ReadStream,
    private readonly stdout: NodeJS.WriteStream,
    private readonly stderr: NodeJS.WriteStream,
    env: NodeJS.ProcessEnv,
  ) {
    this.colours = stdout.isTTY && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  }

  withoutColours(): void {
    this.colours = false;
  }

  get width(): number {
    return this.stdout.isTTY ? this.stdout.columns : Infinity;
  }

  /** Somebody is there to answer. */
  get interactive(): boolean {
    return this.stdin.isTTY && this.stderr.isTTY;
  }

  paint(colour: Colour, text: string): string {
    return this.colours ? styleText(colour, text, { validateStream: false }) : text;
  }

  write(text: string): void {
    this.stdout.write(text);
  }

  line(text: string): void {
    this.stdout.write(`${text}\n`);
  }

  json(value: unknown): void {
    this.stdout.write(`${visibleJson(value, 2)}\n`);
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void {
    const [titles = '', ...lines] = table(columns, rows, this.width).split('\n');
    this.line([this.paint('bold', titles), ...lines].join('\n'));
  }

  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }

  /** A line that is written over and goes away; on a terminal only. */
  passing(text: string): void {
    if (this.stderr.isTTY) this.stderr.write(`\r\u001B[K${text}`);
  }

  async confirm(question: string): Promise<boolean> {
    const terminal = createInterface({ input: this.stdin, output: this.stderr });
    // Ctrl+C and Ctrl+D: without this, the question would never be answered.
    const left = new AbortController();
    terminal.once('SIGINT', () => left.abort());
    terminal.once('close', () => left.abort());
    try {
      const answer = await terminal.question(`${question} [y/N] `, { signal: left.signal });
      return /^y(es)?$/i.test(answer.trim());
    } catch (error) {
      if (!left.signal.aborted) throw error;
      this.note('');
      return false;
    } finally {
      terminal.close();
    }
  }
}
