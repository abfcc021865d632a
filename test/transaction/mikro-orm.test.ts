import { transactionSuite } from './suite.js';
import { mikroOrm, mikroOrmByHand } from './tools/mikro-orm.js';

transactionSuite(mikroOrm);
transactionSuite(mikroOrmByHand);
