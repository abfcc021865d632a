import type { AppProcess } from './app-process.js';
import type { World } from './world.js';

const PROJECTS = ['Office lobby', 'Parking deck', 'Warehouse 7', 'Riverside hall', 'Harbour cafe'];

/** Something to look at in the dashboard: delivered events, dead letters, one that is retried, some for later. */
export async function furnish(app: AppProcess, world: World): Promise<void> {
  for (const [i, projectName] of PROJECTS.entries()) {
    await app.post('/quote-requests', { projectName, supplierPhone: `010-1000-000${i}` });
  }
  // No phone number: given up at once.
  for (const projectName of ['Roof terrace', 'Tea house']) {
    await app.post('/quote-requests', { projectName, supplierPhone: 'ask at the desk' });
  }
  // Refused by the gateway until somebody mends it: retried, and then given up.
  world.gateway.order({ failFor: '010-5000-0001' });
  await app.post('/quote-requests', {
    projectName: 'City archive',
    supplierPhone: '010-5000-0001',
  });
  await world.scheduleReminders(3);
}
