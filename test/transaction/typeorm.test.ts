import { transactionSuite } from './suite.js';
import { typeormManager, typeormQueryRunner } from './tools/typeorm.js';

transactionSuite(typeormManager);
transactionSuite(typeormQueryRunner);
