import type { Command } from 'commander';
import type { Cli } from './cli.js';
export function addDoctor(program: Command, _cli: Cli): Command {
  return program.command('doctor');
}
