import { afterAll, beforeAll, beforeEach, describe } from '@jest/globals';
import { describeActivity } from './conformance/activity.js';
import { describeClaimOthers } from './conformance/claim-others.js';
import { describeClaim } from './conformance/claim.js';
import { describeDeadLetters } from './conformance/dead-letters.js';
import { describeEnqueue } from './conformance/enqueue.js';
import { describeList } from './conformance/list.js';
import { describePrune } from './conformance/prune.js';
import { describeReap } from './conformance/reap.js';
import { describeRedriveAndDiscard } from './conformance/redrive-discard.js';
import { describeRenew } from './conformance/renew.js';
import { describeSettleAndClaim } from './conformance/settle-and-claim.js';
import { describeSettle } from './conformance/settle.js';
import { describeStatsAndFind } from './conformance/stats-find.js';
import { Subject, type StoreUnderTest } from './conformance/subject.js';

export type { OpenTransaction, RawRow, StoreUnderTest } from './conformance/subject.js';

/**
 * What every store must do, verb by verb. An adapter passes all of it: what it cannot do (take part in a
 * caller's transaction) it says in its `StoreUnderTest`, and then has to refuse.
 */
export function describeStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(name, () => {
    const subject = new Subject();

    beforeAll(async () => {
      subject.current = await open();
    });
    beforeEach(() => subject.current.clear());
    afterAll(async () => {
      await subject.current[Symbol.asyncDispose]();
    });

    describeEnqueue(subject);
    describeClaim(subject);
    describeClaimOthers(subject);
    describeSettle(subject);
    describeSettleAndClaim(subject);
    describeRenew(subject);
    describeReap(subject);
    describeRedriveAndDiscard(subject);
    describePrune(subject);
    describeDeadLetters(subject);
    describeList(subject);
    describeStatsAndFind(subject);
    describeActivity(subject);
  });
}
