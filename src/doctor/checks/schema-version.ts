import { OutboxError } from '../../event/outbox-error.js';
import type { Check } from '../check.js';
import { command } from '../patient.js';

export const schemaVersion: Check = {
  name: 'schema-version',
  group: 'schema',
  looksFor: 'an outbox that is missing, older or newer than this code',
  why: 'the code calls functions and reads columns of its own version: with another one, nothing is stored or delivered',
  needs: 'nothing',
  async examine(patient) {
    try {
      await patient.store.check();
      return [];
    } catch (error) {
      if (!(error instanceof OutboxError) || error.code !== 'SCHEMA_MISMATCH') throw error;
      const newer = error.message.includes('newer than');
      return [
        {
          level: 'error',
          what: error.message.replace(/: (run|upgrade) .*$/s, ''),
          fix: newer
            ? 'npm install nestjs-outbox-relay@latest'
            : command(patient, 'migrate'),
        },
      ];
    }
  },
};
