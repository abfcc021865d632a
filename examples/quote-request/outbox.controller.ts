import {
  Controller,
  Get,
  HttpCode,
  NotFoundException,
  Param,
  ParseUUIDPipe,
  Post,
} from '@nestjs/common';
import {
  OutboxDeadLetters,
  OutboxService,
  type DeadLetterPage,
  type OutboxStats,
} from 'nestjs-outbox-relay';

/** For the people who run it. A real application guards these routes. */
@Controller('outbox')
export class OutboxController {
  constructor(
    private readonly outbox: OutboxService,
    private readonly deadLetters: OutboxDeadLetters,
  ) {}

  @Get('stats')
  async stats(): Promise<OutboxStats> {
    return this.outbox.stats();
  }

  @Get('dead-letters')
  async list(): Promise<DeadLetterPage> {
    return this.deadLetters.list();
  }

  @Post('dead-letters/redrive')
  @HttpCode(200)
  async redriveAll(): Promise<{ redriven: number }> {
    return { redriven: await this.deadLetters.redrive({}) };
  }

  @Post('dead-letters/:id/redrive')
  @HttpCode(200)
  async redrive(@Param('id', ParseUUIDPipe) id: string): Promise<{ redriven: number }> {
    const redriven = await this.deadLetters.redrive(id);
    if (redriven === 0) throw new NotFoundException(`${id} is no dead letter`);
    return { redriven };
  }
}
