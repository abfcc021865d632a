// A door of its own: an application without the dashboard loads none of it.
export {
  OutboxDashboardModule,
  type DashboardPlace,
  type OutboxDashboardAsyncOptions,
  type OutboxDashboardOptions,
} from './dashboard/dashboard.module.js';
export type { DashboardAppearance, DashboardSettings } from './dashboard/dashboard-options.js';
export type { DashboardCredentials, DashboardRights } from './dashboard/credentials.js';
export type { DashboardLanguage } from './dashboard/language.js';
export type { DashboardMask } from './dashboard/mask.js';
