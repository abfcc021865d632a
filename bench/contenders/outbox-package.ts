/**
 * This library as a user gets it: compiled, from the copy that the run made at its beginning, so that a build in
 * the middle of a run changes nothing.
 */
import { pathToFileURL } from 'node:url';
import { PACKAGE_COPY } from '../harness/places.ts';

type OutboxPackage = typeof import('nestjs-outbox-relay');

export const outboxPackage = (await import(
  pathToFileURL(`${PACKAGE_COPY}/dist/index.js`).href
)) as OutboxPackage;

export const { outboxSql } = outboxPackage;
