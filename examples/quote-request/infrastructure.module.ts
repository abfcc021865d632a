import { Global, Module } from '@nestjs/common';
import { AlimtalkClient } from './alimtalk.client.js';
import { Database } from './database.js';
import { Settings } from './settings.js';

@Global()
@Module({
  providers: [Settings, Database, AlimtalkClient],
  exports: [Settings, Database, AlimtalkClient],
})
export class InfrastructureModule {}
