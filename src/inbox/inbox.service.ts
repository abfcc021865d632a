import { Injectable } from '@nestjs/common';
import { isEventId } from '../event/event-id.js';
import { assertKnownKeys } from '../event/known-keys.js';
import { invalid, OutboxError } from '../event/outbox-error.js';
import {
  chosenTransaction,
  type CurrentTransaction,
  type TransactionChoice,
} from '../transaction/chosen-transaction.js';
import { openTransaction, type OutboxTransaction } from '../transaction/outbox-transaction.js';
import type { PgTransaction } from '../transaction/pg.js';
import type { OpenTransaction } from '../transaction/transaction-tool.js';
import type { InboxTable } from './inbox-table.js';
import { poolTransaction } from './pool-transaction.js';

/** What a listener received, or the id of an event. */
export type HandledEvent = string | { readonly _outbox: { readonly id: string } };

export interface OnceOptions<Tx extends OutboxTransaction> {
  /**
   * How to run something in a transaction of your tool, e.g. `(run) => dataSource.transaction(run)`. It must be of the
   * database the events rest in. Default: a transaction on the outbox's own pool, and `work` gets the pg client.
   */
  readonly transaction?: ((run: (tx: Tx) => Promise<void>) => PromiseLike<unknown>) | undefined;
}

const LONGEST_CONSUMER = 255;

/**
 * "Has this consumer already done this event?" Delivery is at least once; with the inbox, what a listener does in the
 * database is done exactly once: the record that it was done is written in the same transaction.
 */
@Injectable()
export class OutboxInbox {
  constructor(
    private readonly table: InboxTable | undefined,
    private readonly currentTransaction: CurrentTransaction | undefined,
  ) {}

  /**
   * Does `work` unless `consumer` has done it for this event before, in a transaction of its own.
   *
   * ```ts
   * @OnEvent('order.paid')
   * async book(event: Delivered<'order.paid'>) {
   *   await this.inbox.once(event, 'ledger', async (client) => {
   *     await client.query('INSERT INTO ledger (order_id) VALUES ($1)', [event.orderId]);
   *   });
   * }
   * ```
   *
   * If `work` fails, the record is rolled back with it, and the next delivery tries again. A second delivery at the
   * same time waits for the first: it does nothing if that one succeeds, and the work if it fails.
   *
   * @param consumer names who does it, 1 to 255 characters: always the same, in every version and process
   * @returns whether `work` was done now; `false`: it had been done before
   * @throws OutboxError `INVALID_ARGUMENT`; `SETUP` if events do not rest in PostgreSQL; whatever `work` throws
   */
  async once<Tx extends OutboxTransaction = PgTransaction>(
    event: HandledEvent,
    consumer: string,
    work: (tx: Tx) => unknown,
    options: OnceOptions<Tx> = {},
  ): Promise<boolean> {
    const table = this.assertTable();
    const eventId = idOf(event);
    assertConsumer(consumer);
    if (typeof work !== 'function') throw invalid('work must be a function');
    assertKnownKeys('', options, ['transaction']);
    // `work` gets the client as it is: the pool was lent to us by the application, or is ours.
    const onPool: NonNullable<typeof options.transaction> = (run) =>
      poolTransaction(table.pool, (client) => run(client as unknown as Tx));
    const { transaction = onPool } = options;

    let first: boolean | undefined;
    await transaction(async (tx) => {
      const { executor } = await openTransaction(tx);
      first = await table.record(executor, eventId, consumer);
      if (!first) return;
      await work(tx);
      // An error that `work` has caught leaves the transaction aborted, and its COMMIT rolls back without a word.
      await executor.query('SELECT 1 AS intact', []);
    });
    if (first !== undefined) return first;
    throw invalid('options.transaction must call what it is given, with the open transaction');
  }

  /**
   * Records, as part of your own open transaction, that `consumer` does the event: for work that is in a transaction
   * already.
   *
   * ```ts
   * await dataSource.transaction(async (manager) => {
   *   if (!(await this.inbox.record(event, 'ledger', { tx: manager }))) return;
   *   await manager.insert(Ledger, { orderId: event.orderId });
   * });
   * ```
   *
   * @returns whether it is the first time; `false`: it has been done, do nothing. The transaction is usable either way
   * @throws OutboxError `INVALID_ARGUMENT` also if there is no transaction: a record of its own would outlive work
   * that fails
   */
  async record(
    event: HandledEvent,
    consumer: string,
    choice: TransactionChoice = {},
  ): Promise<boolean> {
    const table = this.assertTable();
    const eventId = idOf(event);
    assertConsumer(consumer);
    assertKnownKeys('', choice, ['tx']);
    const transaction = await chosenTransaction(choice, this.currentTransaction);
    return table.record(assertTransaction(transaction).executor, eventId, consumer);
  }

  private assertTable(): InboxTable {
    if (this.table !== undefined) return this.table;
    throw new OutboxError(
      'SETUP',
      'the inbox needs events to rest in PostgreSQL (connectionString or pool), where the work is',
    );
  }
}

function assertTransaction(transaction: OpenTransaction | undefined): OpenTransaction {
  if (transaction !== undefined) return transaction;
  throw invalid(
    'there is no transaction to record in: pass yours as tx, or let once() begin one of its own',
  );
}

function idOf(event: unknown): string {
  const isObject = typeof event === 'object' && event !== null;
  const { _outbox: context } = (isObject ? event : {}) as { _outbox?: { id?: unknown } };
  const id = isObject ? context?.id : event;
  if (isEventId(id)) return id.toLowerCase();
  throw invalid(
    'event must be what the listener received (with _outbox.id) or the id of an event, a UUID, got ' +
      (isObject ? `an object whose _outbox.id is ${typeof id}` : JSON.stringify(event)),
  );
}

function assertConsumer(consumer: unknown): void {
  const usable =
    typeof consumer === 'string' &&
    consumer.trim() !== '' &&
    consumer.length <= LONGEST_CONSUMER &&
    !consumer.includes('\0') &&
    consumer.isWellFormed();
  if (usable) return;
  throw invalid(
    `consumer must be a name of 1 to ${LONGEST_CONSUMER} characters that stays the same, e.g. 'ledger', got ${
      typeof consumer === 'string' ? JSON.stringify(consumer) : typeof consumer
    }`,
  );
}
