import { describe, expect, it } from '@jest/globals';
import { PgBossTicks, type TickBoss, type TickJob } from '../../src/relay/ticks.js';
import { RecordingLogger } from '../support/logger.js';

/** Notes what it is asked, and fails where it is told to. */
class TestBoss implements TickBoss {
  readonly asked: { what: string; options?: object | undefined }[] = [];
  readonly workers: ((jobs: TickJob[]) => Promise<void>)[] = [];
  failing: string | undefined;

  private ask(what: string, options?: object): void {
    this.asked.push({ what, options });
    if (this.failing === what) throw new Error(`cannot ${what}`);
  }

  async createQueue(_name: string, options?: object): Promise<void> {
    this.ask('createQueue', options);
  }

  async schedule(): Promise<void> {
    this.ask('schedule');
  }

  async send(_name: string, _data?: object | null, options?: object): Promise<string> {
    this.ask('send', options);
    return 'id';
  }

  async work(
    _name: string,
    options: object,
    handler: (jobs: TickJob[]) => Promise<void>,
  ): Promise<string> {
    this.ask('work', options);
    this.workers.push(handler);
    return 'id';
  }

  async offWork(): Promise<void> {
    this.ask('offWork');
  }

  get steps(): string[] {
    return this.asked.map(({ what }) => what);
  }
}

describe('ticks on a pg-boss', () => {
  const log = new RecordingLogger();
  const newTicks = (boss: TestBoss, onTick = async (): Promise<void> => {}): PgBossTicks =>
    new PgBossTicks(boss, 'queue', onTick, log);

  it('make the queue before anything else, and work last', async () => {
    const boss = new TestBoss();
    await newTicks(boss).start();
    expect(boss.steps).toEqual(['createQueue', 'schedule', 'send', 'work']);
  });

  it('begin with one at once: what a dead process has left does not wait for the first of the chain', async () => {
    let ticks = 0;
    await newTicks(new TestBoss(), async () => void ticks++).start();
    expect(ticks).toBe(1);
  });

  it.each(['createQueue', 'schedule', 'send', 'work'])(
    'whose start failed at %s can be started again, and have one worker',
    async (step) => {
      const boss = new TestBoss();
      const ticks = newTicks(boss);
      boss.failing = step;
      await expect(ticks.start()).rejects.toThrow(`cannot ${step}`);
      boss.failing = undefined;
      await ticks.start();
      expect(boss.workers).toHaveLength(1);
    },
  );

  it.each([
    { late: 'in time', startedOn: 0, waits: 15 },
    { late: 'late by 1.8 s', startedOn: 1_800, waits: 13.2 },
    { late: 'late by a whole round, as after an outage', startedOn: 20_000, waits: 15 },
    { late: 'early, by a clock that was set back', startedOn: -5_000, waits: 15 },
  ])(
    'send the next one first: one that came $late waits $waits s',
    async ({ startedOn, waits }) => {
      const boss = new TestBoss();
      const order: string[] = [];
      await newTicks(boss, async () => {
        order.push(...boss.steps.slice(-1), 'tick');
      }).start();
      order.length = 0;
      await boss.workers[0]?.([{ startAfter: new Date(0), startedOn: new Date(startedOn) }]);
      expect(order).toEqual(['send', 'tick']);
      expect(boss.asked.at(-1)).toEqual({ what: 'send', options: { startAfter: waits } });
    },
  );

  it('tick though the next one cannot be sent, and say so', async () => {
    const boss = new TestBoss();
    let ticks = 0;
    await newTicks(boss, async () => void ticks++).start();
    ticks = 0;
    boss.failing = 'send';
    await boss.workers[0]?.([{}]);
    expect(ticks).toBe(1);
    expect(log.messages('warn')).toEqual([
      'could not schedule the next tick, it will come within a minute: cannot send',
    ]);
  });
});
