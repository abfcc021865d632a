import pg from 'pg';
import { startCluster } from '../../../tools/postgres-cluster.ts';
import { MessageGateway } from '../gateway.js';
import { AppProcess, type App } from './app-process.js';
import type { Narrator } from './narrator.js';
import { World } from './world.js';

export interface WorldOptions {
  /** Default: a database of the demo's own PostgreSQL. */
  databaseUrl?: string | undefined;
  gatewayPort?: number;
}

/** Starts what the demo needs, and takes all of it down again. */
export class Stage {
  readonly apps: AppProcess[] = [];
  private readonly cleanups: (() => Promise<unknown>)[] = [];
  private cluster: ReturnType<typeof startCluster> | undefined;
  private cleared = false;

  constructor(private readonly narrator: Narrator) {}

  async world(name: string, { databaseUrl, gatewayPort = 0 }: WorldOptions = {}): Promise<World> {
    const gateway = await MessageGateway.start({
      port: gatewayPort,
      say: (line) => this.narrator.line('gateway', line),
    });
    const world = new World(databaseUrl ?? (await this.createDatabase(name)), gateway);
    this.cleanups.push(() => world.close());
    return world;
  }

  /** Starts an application in a world, and waits until it listens. */
  async start(app: App, world: World, env: NodeJS.ProcessEnv): Promise<AppProcess> {
    if (this.cleared) throw new Error('the demo is over');
    const started = AppProcess.launch(app, {
      env: { ...env, DATABASE_URL: world.databaseUrl, GATEWAY_URL: world.gateway.url },
      onLog: ({ level, context, text }) => {
        if (level === 'LOG' || level === 'DEBUG') return;
        this.narrator.line('app', context === 'Alarm' ? `ALARM: ${text}` : text);
      },
    });
    this.apps.push(started);
    await started.untilListening();
    this.narrator.line('app', `${app}.ts started, pid ${started.pid}`);
    return started;
  }

  get isCleared(): boolean {
    return this.cleared;
  }

  /** Leaves nothing behind: no process, no folder. Safe at any time, and again. */
  async clear(): Promise<void> {
    this.cleared = true;
    await Promise.all(this.apps.map((app) => app.stop()));
    for (const cleanup of this.cleanups.splice(0).toReversed()) await cleanup();
    const cluster = await this.cluster?.catch(() => undefined);
    await cluster?.remove();
  }

  private async createDatabase(name: string): Promise<string> {
    // As in production: the doctor would say so of one that is only fast.
    this.cluster ??= startCluster({ major: 18, durable: true });
    const cluster = await this.cluster;
    const client = new pg.Client({ connectionString: cluster.connectionString() });
    await client.connect();
    await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
    await client.end();
    return cluster.connectionString(name);
  }
}
