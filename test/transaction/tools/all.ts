import { drizzleOnAnotherDriver, drizzleOnPg, drizzleOnPostgresJs } from './drizzle.js';
import { knex } from './knex.js';
import { kysely, kyselyControlled } from './kysely.js';
import { mikroOrm, mikroOrmByHand } from './mikro-orm.js';
import { olderPgClient, pgClient } from './pg.js';
import { postgresJs, postgresJsReserved } from './postgres-js.js';
import { prisma } from './prisma.js';
import type { Tool } from './tool.js';
import { typeormManager, typeormQueryRunner } from './typeorm.js';

/** Every tool that `tx` may come from. */
export const TOOLS: readonly Tool[] = [
  pgClient(18),
  pgClient(14),
  olderPgClient,
  postgresJs,
  postgresJsReserved,
  knex,
  kysely,
  kyselyControlled,
  drizzleOnPg,
  drizzleOnPostgresJs,
  drizzleOnAnotherDriver,
  prisma,
  typeormManager,
  typeormQueryRunner,
  mikroOrm,
  mikroOrmByHand,
];
