import { run } from './app.js';

run().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
