import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { startCluster } from '../../tools/postgres-cluster.js';
import { startChild } from './child.js';
import { createDatabase, type TestDatabase } from './database.js';
import { RecordingLogger } from './logger.js';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.js';
import { deferred, until, untilPasses } from './until.js';

describe('a database', () => {
  it.each([14, 18] as const)('of PostgreSQL %i answers as that version, in UTF8', async (major) => {
    await using database = await createDatabase(major);
    const [version] = await database.query<{ server_version: string }>('SHOW server_version');
    const [encoding] = await database.query('SHOW server_encoding');
    expect(version?.server_version).toMatch(new RegExp(`^${major}\\.`));
    expect(encoding).toEqual({ server_encoding: 'UTF8' });
  });

  it('survives that all its connections are cut', async () => {
    await using database = await createDatabase();
    await database.query('SELECT 1');
    expect(await database.terminateBackends()).toBe(1);
    await until(() => database.pool.totalCount === 0, { what: 'the pool has noticed' });
    expect(await database.query('SELECT 2 AS two')).toEqual([{ two: 2 }]);
  });

  it('says who still holds a connection when it is dropped, and is dropped all the same', async () => {
    const database = await createDatabase();
    const client = await database.pool.connect();
    client.on('error', () => {});
    await client.query('SELECT 1 AS forgotten');
    await expect(database.drop()).rejects.toThrow(/1 connection.*SELECT 1 AS forgotten/s);
    await expect(client.query('SELECT 1')).rejects.toThrow();
    client.release(true);
  });
});

describe('a cluster', () => {
  it('that was stopped comes back on the same port with its data', async () => {
    const cluster = await startCluster({ major: 18, durable: true, settings: { work_mem: '5MB' } });
    try {
      const { port } = cluster;
      const ask = async (text: string) => {
        const client = new pg.Client({ connectionString: cluster.connectionString() });
        client.on('error', () => {});
        await client.connect();
        try {
          return (await client.query<Record<string, unknown>>(text)).rows;
        } finally {
          await client.end();
        }
      };
      await ask('CREATE TABLE kept AS SELECT 1 AS one');
      for (const mode of ['immediate', 'fast'] as const) {
        await cluster.stop(mode);
        expect(cluster.pid).toBeUndefined();
        await expect(ask('SELECT 1')).rejects.toThrow('ECONNREFUSED');
        await cluster.start();
        expect(cluster.port).toBe(port);
        expect(await ask('SELECT one FROM kept')).toEqual([{ one: 1 }]);
      }
      expect(await ask('SHOW work_mem')).toEqual([{ work_mem: '5MB' }]);
    } finally {
      await cluster.remove();
    }
  });

  it('that cannot start says why, in the words of the server', async () => {
    const settings = { shared_buffers: 'plenty' };
    await expect(startCluster({ major: 18, settings })).rejects.toThrow(
      /ended while starting.*invalid value for parameter "shared_buffers"/s,
    );
  });
});

describe('a child process', () => {
  it('is followed: its messages, its lines and how it ends', async () => {
    const child = startChild('harness', { env: { GREETING: 'hello' }, args: ['a', 'b'] });
    expect(await child.message('ready')).toEqual({ type: 'ready', greeting: 'hello' });
    expect(await child.message('argument')).toMatchObject({ argument: 'a' });
    expect(await child.message('argument')).toMatchObject({ argument: 'b' });
    expect(await child.line(/stderr/)).toBe('on stderr');
    child.send('ping');
    expect(await child.message('echo')).toEqual({ type: 'echo', line: 'ping' });
    child.send('exit');
    expect(await child.exited).toEqual({ code: 3, signal: null });
  });

  it('that is killed says so', async () => {
    const child = startChild('harness');
    await child.message('ready');
    expect(await child.kill('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('that ends before what was awaited fails the wait at once, with its output', async () => {
    const child = startChild('harness');
    child.send('exit');
    await expect(child.message('never')).rejects.toThrow(/ended \(3\) before.*on stderr/s);
  });
});

describe('a TCP proxy', () => {
  let database: TestDatabase;
  let proxy: TcpProxy;
  let client: pg.Client;

  beforeEach(async () => {
    database = await createDatabase();
    proxy = await startTcpProxy(database.connectionString);
    client = newClient();
    await client.connect();
  });

  afterEach(async () => {
    client.connection.stream.destroy();
    await proxy.close();
    await database.terminateBackends();
    await database.drop();
  });

  it('is transparent at first', async () => {
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await client.end();
    await until(() => proxy.connections === 0, { what: 'the proxy has closed its side' });
  });

  it('passes on what the server says last', async () => {
    const [message] = await Promise.all([
      new Promise((resolve) => client.once('error', (error) => resolve(error.message))),
      database.terminateBackends(),
    ]);
    expect(message).toMatch(/terminating connection due to administrator command/);
  });

  it('drops everybody', async () => {
    proxy.dropAll();
    await expect(client.query('SELECT 1')).rejects.toThrow();
    expect(proxy.connections).toBe(0);
  });

  it('refuses newcomers, keeps the others, and takes newcomers again', async () => {
    proxy.refuse();
    await expect(newClient().connect()).rejects.toThrow('ECONNREFUSED');
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await proxy.restore();
    const newcomer = newClient();
    await newcomer.connect();
    await newcomer.end();
  });

  it('goes half open: nothing answers, nothing fails, until it is restored', async () => {
    proxy.halfOpen();
    const answer = deferred<string>();
    client.query('SELECT 1').then(
      () => answer.resolve('answered'),
      () => answer.resolve('failed'),
    );
    const newcomer = newClient({ connectionTimeoutMillis: 300 });
    await expect(newcomer.connect()).rejects.toThrow(/timeout/);
    // A whole connection timeout later the query still hangs.
    expect(await Promise.race([answer.promise, Promise.resolve('hangs')])).toBe('hangs');

    await proxy.restore();
    expect(await answer.promise).toBe('failed');
    const restored = newClient();
    await restored.connect();
    await restored.end();
  });

  function newClient(config: pg.ClientConfig = {}): pg.Client {
    const created = new pg.Client({ ...config, connectionString: proxy.connectionString });
    created.on('error', () => {});
    return created;
  }
});

describe('until', () => {
  it('answers the first truthy answer, through errors and falsy answers', async () => {
    const answers = [() => 0, () => undefined, () => fail('not yet'), () => 'there'];
    const check = () => answers.shift()?.();
    expect(await until(check, { what: 'it is there' })).toBe('there');
  });

  it('says what it waited for, and the last it saw, also when the check itself hangs', async () => {
    const options = { what: 'pigs fly', timeoutMs: 30 };
    await expect(until(() => fail('no wings'), options)).rejects.toThrow(
      'Waited 30 ms in vain until pigs fly. Last error: no wings',
    );
    await expect(until(() => 0, options)).rejects.toThrow('Last answer: 0');
    await expect(until(() => new Promise(() => {}), options)).rejects.toThrow('never settled');
  });

  it('takes an assertion that passes', async () => {
    let count = 0;
    await untilPasses(() => expect(++count).toBe(3), { what: 'it counted to three' });
    expect(count).toBe(3);
  });

  function fail(message: string): never {
    throw new Error(message);
  }
});

describe('a recording logger', () => {
  it('remembers level, context and text of what Nest logs', () => {
    const recording = new RecordingLogger();
    Logger.overrideLogger(recording);
    try {
      new Logger('Relay').warn('slow');
      new Logger('Relay').error('broken', 'the stack');
    } finally {
      Logger.overrideLogger(false);
    }
    expect(recording.lines).toEqual([
      { level: 'warn', context: 'Relay', message: 'slow', rest: [] },
      { level: 'error', context: 'Relay', message: 'broken', rest: ['the stack'] },
    ]);
    expect(recording.messages('warn')).toEqual(['slow']);
  });
});
