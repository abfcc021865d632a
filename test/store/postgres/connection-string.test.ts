import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  isConnectionString,
  passwordsIn,
  shownConnectionString,
} from '../../../src/store/postgres/connection-string.js';

describe('a connection string', () => {
  it.each([
    'postgres://user:password@host:5432/database',
    'postgresql://host/database?sslmode=verify-full',
    'postgres:///database?host=/var/run/postgresql',
    'postgres://user:pass@/database?host=/var/run/postgresql',
    'postgres://%2Fvar%2Frun%2Fpostgresql/database',
    'postgres://[::1]:5432/database',
    'postgres://user:a%40b@host/database',
    'postgres://user:100%@host/database',
    'postgres://user:with space@host/data base',
    'socket:/var/run/postgresql?db=database',
    '/var/run/postgresql database',
  ])('may be %s, and node-postgres reads it without trouble', (value) => {
    expect(isConnectionString(value)).toBe(true);
    expect(() => new pg.Client({ connectionString: value })).not.toThrow();
  });

  it.each([
    ['', 'an empty string'],
    ['  ', 'an empty string'],
    ['my-database', 'a text that is no URL'],
    ['user:secret@host/db', 'a text that is no URL'],
    ['http://user:secret@host/db', 'a URL that begins with http://'],
    ['jdbc:postgresql://host/db', 'a text that is no URL'],
    ['postgres:host', 'a text that is no URL'],
    ['host=localhost password=secret', 'a list of keyword=value'],
    ['postgres://user:secret@host:port/db', 'a URL that cannot be read'],
    ['postgres://user:se/cret@host/db', 'a URL that cannot be read'],
    [undefined, 'undefined'],
    [null, 'null'],
    [5, 'number'],
  ])('is not %j, which is told and not shown', (value, shown) => {
    expect(isConnectionString(value)).toBe(false);
    expect(shownConnectionString(value)).toContain(shown);
    expect(shownConnectionString(value)).not.toContain('secret');
  });

  it.each([
    ['postgres://u:secret@h/d', ['secret']],
    ['postgres://u:a%40b@h/d', ['a%40b', 'a@b']],
    ['postgres://u:a/b@h/d', ['a/b']],
    ['postgres://u:a@b@h/d', ['a@b']],
    ['postgres://u@h/d?password=se%23cret&x=y', ['se%23cret', 'se#cret']],
    ['postgres://u@h/d', []],
    ['postgres://u:@h/d', []],
  ])('in %s the passwords %j are known', (value, passwords) => {
    for (const password of passwords) expect(passwordsIn(value)).toContain(password);
    if (passwords.length === 0) expect(passwordsIn(value)).toEqual([]);
  });
});
