import { transactionSuite } from './suite.js';
import { drizzleOnAnotherDriver, drizzleOnPg, drizzleOnPostgresJs } from './tools/drizzle.js';

transactionSuite(drizzleOnPg);
transactionSuite(drizzleOnPostgresJs);
transactionSuite(drizzleOnAnotherDriver);
