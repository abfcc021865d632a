import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Deadlines, type Limited } from '../../src/delivery/deadlines.js';

describe('deadlines', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const deadlines = new Deadlines(1_000);
  let over: string[] = [];
  beforeEach(() => {
    over = [];
  });

  function begin(name: string): Limited {
    const limited = { timeOut: () => void over.push(name) };
    deadlines.begin(limited);
    return limited;
  }

  it('give each its own time, from when it began', () => {
    begin('first');
    jest.advanceTimersByTime(400);
    begin('second');
    jest.advanceTimersByTime(599);
    expect(over).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(over).toEqual(['first']);
    jest.advanceTimersByTime(399);
    expect(over).toEqual(['first']);
    jest.advanceTimersByTime(1);
    expect(over).toEqual(['first', 'second']);
  });

  it('leave alone what has ended, and hold the others to their time', () => {
    const first = begin('first');
    jest.advanceTimersByTime(400);
    begin('second');
    deadlines.end(first);
    jest.advanceTimersByTime(999);
    expect(over).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(over).toEqual(['second']);
  });

  it('leave no timer behind once everything has ended', () => {
    const [a, b] = [begin('a'), begin('b')];
    deadlines.end(a);
    deadlines.end(b);
    expect(jest.getTimerCount()).toBe(0);
    begin('c');
    jest.advanceTimersByTime(1_000);
    expect(over).toEqual(['c']);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('go on when something times out while another begins', () => {
    deadlines.begin({ timeOut: () => void begin('next') });
    jest.advanceTimersByTime(1_000);
    jest.advanceTimersByTime(999);
    expect(over).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(over).toEqual(['next']);
  });
});
