import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { Settings } from './settings.js';

const app = await NestFactory.create(AppModule);
app.enableShutdownHooks(); // or a SIGTERM ends the process without letting the relay finish
await app.listen(app.get(Settings).port, '127.0.0.1');
new Logger('Main').log(`listening on ${await app.getUrl()}`);
