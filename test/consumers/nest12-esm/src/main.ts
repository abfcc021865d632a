import { run } from './app.js';

await run();
