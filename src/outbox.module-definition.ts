import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { OutboxModuleOptions } from './outbox-options.js';

export const {
  ConfigurableModuleClass: ConfigurableOutboxModule,
  MODULE_OPTIONS_TOKEN: OUTBOX_MODULE_OPTIONS,
  ASYNC_OPTIONS_TYPE: OUTBOX_ASYNC_OPTIONS,
  OPTIONS_TYPE: OUTBOX_OPTIONS,
} = new ConfigurableModuleBuilder<OutboxModuleOptions>({ moduleName: 'Outbox' })
  .setClassMethodName('forRoot')
  .setFactoryMethodName('createOutboxOptions')
  // Any service of the application enqueues: global, unless told otherwise.
  .setExtras({ isGlobal: true }, (definition, { isGlobal }) => ({
    ...definition,
    global: isGlobal,
  }))
  .build();

/** What `forRootAsync({ useClass })` and `{ useExisting }` ask for the options. */
export interface OutboxOptionsFactory {
  createOutboxOptions(): OutboxModuleOptions | Promise<OutboxModuleOptions>;
}
