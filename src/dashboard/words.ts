/** Every word on the pages. A language that lacks one does not compile. */
export interface Words {
  readonly code: 'en' | 'ko';
  readonly name: string;
  readonly skip: string;
  readonly pages: string;
  readonly paging: string;
  readonly languages: string;
  readonly overview: string;
  readonly deadLetters: string;
  readonly waiting: string;
  readonly processes: string;
  readonly gates: string;
  readonly readOnly: string;
  readonly mayAct: string;

  readonly due: string;
  readonly dueHint: string;
  readonly oldestDue: string;
  readonly oldestDueHint: string;
  readonly scheduled: string;
  readonly scheduledHint: string;
  readonly processing: string;
  readonly processingHint: string;
  readonly failedState: string;
  readonly failedHint: string;
  readonly completed: string;
  readonly completedHint: string;
  readonly nothingDue: string;
  readonly unknown: string;
  readonly unheard: (types: string) => string;
  readonly noRelay: string;
  readonly allQuiet: string;

  readonly activity: string;
  readonly activityHint: string;
  readonly perMinute: string;
  readonly lastHour: string;
  readonly lastDay: string;
  readonly span: string;
  readonly allTypes: string;
  readonly onlyType: string;
  readonly delivered: string;
  readonly retried: string;
  readonly failed: string;
  readonly byType: string;
  readonly asTable: string;
  readonly time: string;
  readonly noActivity: string;
  readonly noReports: string;

  readonly relays: string;
  readonly relay: string;
  readonly version: string;
  readonly state: string;
  readonly alive: string;
  readonly ended: string;
  readonly silent: string;
  readonly started: string;
  readonly lastSeen: string;
  readonly listeners: string;
  readonly listener: string;
  readonly listensTo: string;
  readonly thisProcess: string;
  readonly noListeners: string;
  readonly noRelays: string;

  readonly gatesHint: string;
  readonly gate: string;
  readonly stamped: string;
  readonly running: string;
  readonly closedUntil: string;
  readonly failing: string;
  readonly open: string;
  readonly noGates: string;
  readonly reopen: string;
  readonly failures: string;

  readonly search: string;
  readonly searchLabel: string;
  readonly eventType: string;
  readonly within: string;
  readonly anyTime: string;
  readonly pastHour: string;
  readonly pastDay: string;
  readonly pastWeek: string;
  readonly clear: string;
  readonly found: (count: string) => string;
  readonly noDeadLetters: string;
  readonly noneFound: string;
  readonly select: (what: string) => string;
  readonly selectAll: string;
  readonly selected: (count: string) => string;
  readonly withSelected: string;
  readonly withAll: (count: string) => string;
  readonly event: string;
  readonly error: string;
  readonly attempts: string;
  readonly setAside: string;
  readonly olderOnes: string;
  readonly laterOnes: string;
  readonly firstPage: string;
  readonly redrive: string;
  readonly discard: string;

  readonly id: string;
  readonly status: Readonly<Record<'PENDING' | 'PROCESSING' | 'COMPLETED' | 'FAILED', string>>;
  readonly created: string;
  readonly dueAt: string;
  readonly finishedAt: string;
  readonly leasedUntil: string;
  readonly unheardSince: string;
  readonly failedAttempts: string;
  readonly lastError: string;
  readonly noError: string;
  readonly payload: string;
  readonly metadata: string;
  readonly masked: string;
  readonly succeeded: string;
  readonly hasFailed: string;
  readonly notYet: string;
  readonly noKnownListeners: string;
  readonly previousLives: string;
  readonly redrivenAt: string;
  readonly back: string;

  readonly waitingHint: string;
  readonly nothingHere: string;
  readonly withoutType: string;

  readonly confirmRedrive: (count: string) => string;
  readonly confirmDiscard: (count: string) => string;
  readonly redriveMeans: string;
  readonly discardMeans: string;
  readonly perSecond: string;
  readonly perSecondHint: string;
  readonly cancel: string;
  readonly nothingLeft: string;
  readonly progress: string;
  readonly progressOf: (done: string, total: string) => string;
  readonly redriven: (count: string) => string;
  readonly discarded: (count: string) => string;
  readonly reopened: string;
  readonly continue: string;
  readonly stepFailed: string;
  readonly stop: string;

  readonly pause: string;
  readonly resume: string;
  readonly updated: string;
  readonly notReached: string;

  readonly problem: Readonly<Record<400 | 401 | 403 | 404 | 500, string>>;
  readonly notAllowed: string;
  readonly crossOrigin: (why: string) => string;
  readonly noForm: string;
  readonly noSuchPage: string;
  readonly noSuchEvent: (id: string) => string;

  readonly ago: (span: string) => string;
  readonly duration: (seconds: number) => string;
  readonly number: (value: number) => string;
}

const number = new Intl.NumberFormat('en');

function plural(count: string, one: string, many: string): string {
  return `${count} ${count === '1' ? one : many}`;
}

export const english: Words = {
  code: 'en',
  name: 'English',
  skip: 'Skip to content',
  pages: 'Pages',
  paging: 'More of this list',
  languages: 'Language',
  overview: 'Overview',
  deadLetters: 'Dead letters',
  waiting: 'Waiting',
  processes: 'Processes',
  gates: 'Gates',
  readOnly: 'read only',
  mayAct: 'read and act',

  due: 'Due',
  dueHint: 'a relay would take them now',
  oldestDue: 'Oldest due',
  oldestDueHint: 'how long it has been due',
  scheduled: 'Scheduled',
  scheduledHint: 'for later, or waiting for a retry',
  processing: 'In flight',
  processingHint: 'a relay has them',
  failedState: 'Dead letters',
  failedHint: 'set aside, waiting for you',
  completed: 'Delivered',
  completedHint: 'still kept; an estimate',
  nothingDue: 'none',
  unknown: 'unknown',
  unheard: (types) => `Nobody listens to: ${types}`,
  noRelay: 'No relay is alive: nothing is being delivered.',
  allQuiet: 'Nothing needs you.',

  activity: 'Activity',
  activityHint: 'From the reports of the relays, which come every 15 seconds.',
  perMinute: 'Events per minute',
  lastHour: 'Last hour',
  lastDay: 'Last day',
  span: 'Span',
  allTypes: 'All event types',
  onlyType: 'Only',
  delivered: 'Delivered',
  retried: 'To be retried',
  failed: 'Set aside',
  byType: 'By event type',
  asTable: 'The same as a table',
  time: 'Time',
  noActivity: 'Nothing was delivered in this time.',
  noReports: 'This store keeps no reports of relays.',

  relays: 'Relays',
  relay: 'Relay',
  version: 'Version',
  state: 'State',
  alive: 'alive',
  ended: 'ended',
  silent: 'silent',
  started: 'Started',
  lastSeen: 'Last seen',
  listeners: 'Listeners',
  listener: 'Listener',
  listensTo: 'Listens to',
  thisProcess: 'Listeners in this process',
  noListeners: 'This process has no listeners.',
  noRelays: 'No relay has reported within a day.',

  gatesHint: 'Work of the bootstrap publisher that is done once per key.',
  gate: 'Gate',
  stamped: 'stamped',
  running: 'running',
  closedUntil: 'closed until',
  failing: 'failing',
  open: 'not stamped',
  noGates: 'There are no gates.',
  reopen: 'Reopen',
  failures: 'Failures in a row',

  search: 'Search',
  searchLabel: 'Event id, type or error text',
  eventType: 'Event type',
  within: 'Set aside',
  anyTime: 'at any time',
  pastHour: 'in the last hour',
  pastDay: 'in the last day',
  pastWeek: 'in the last week',
  clear: 'Clear',
  found: (count) => plural(count, 'dead letter', 'dead letters'),
  noDeadLetters: 'There are no dead letters. Every event was delivered, or still will be.',
  noneFound: 'No dead letter matches.',
  select: (what) => `Select ${what}`,
  selectAll: 'Select all on this page',
  selected: (count) => `${count} selected`,
  withSelected: 'With the selected:',
  withAll: (count) => `With all ${count} that match:`,
  event: 'Event',
  error: 'Error',
  attempts: 'Attempts',
  setAside: 'Set aside',
  olderOnes: 'Older ones',
  laterOnes: 'Later ones',
  firstPage: 'First page',
  redrive: 'Redrive',
  discard: 'Discard',

  id: 'Id',
  status: {
    PENDING: 'pending',
    PROCESSING: 'in flight',
    COMPLETED: 'delivered',
    FAILED: 'dead letter',
  },
  created: 'Created',
  dueAt: 'Due',
  finishedAt: 'Finished',
  leasedUntil: 'Held until',
  unheardSince: 'Unheard since',
  failedAttempts: 'Failed attempts',
  lastError: 'Last error',
  noError: 'No attempt has failed.',
  payload: 'Payload',
  metadata: 'Metadata',
  masked: 'Some fields are hidden from this page.',
  succeeded: 'succeeded',
  hasFailed: 'failed',
  notYet: 'not yet succeeded',
  noKnownListeners: 'No process that is alive listens to this event type.',
  previousLives: 'Previous lives',
  redrivenAt: 'Redriven',
  back: 'Dead letters',

  waitingHint: 'Events that are not finished, the one due first in front.',
  nothingHere: 'There are none.',
  withoutType: 'Leave empty for all types',

  confirmRedrive: (count) => `Redrive ${plural(count, 'dead letter', 'dead letters')}?`,
  confirmDiscard: (count) => `Discard ${plural(count, 'dead letter', 'dead letters')}?`,
  redriveMeans:
    'Each gets all its attempts again. Listeners that have succeeded are not called a second time.',
  discardMeans: 'They are deleted for good. This cannot be undone.',
  perSecond: 'Events per second',
  perSecondHint: 'So many become due each second, so that the redrive is no flood.',
  cancel: 'Cancel',
  nothingLeft: 'There is nothing left to do: no dead letter matches any more.',
  progress: 'Progress',
  progressOf: (done, total) => `${done} of ${total}`,
  redriven: (count) => `${plural(count, 'dead letter', 'dead letters')} redriven.`,
  discarded: (count) => `${plural(count, 'dead letter', 'dead letters')} discarded.`,
  reopened: 'The gate is open again.',
  continue: 'Continue',
  stepFailed: 'A step has failed. What was done stays done; the rest can be continued.',
  stop: 'Stop',

  pause: 'Pause updates',
  resume: 'Resume updates',
  updated: 'Updated',
  notReached: 'The server does not answer; trying again.',

  problem: {
    400: 'That cannot be meant',
    401: 'Please sign in',
    403: 'Not allowed',
    404: 'Not found',
    500: 'Something went wrong',
  },
  notAllowed: 'You may look, but not change anything.',
  crossOrigin: (why) =>
    `The request did not come from a page of this dashboard (${why}). If a proxy rewrites the Host header, set the dashboard's option origin.`,
  noForm:
    "The form did not arrive: the application's body parser for application/x-www-form-urlencoded is off. Turn it on for the dashboard's path.",
  noSuchPage: 'There is no such page.',
  noSuchEvent: (id) =>
    `There is no event ${id}. It may have been discarded, or pruned after its retention.`,

  ago: (span) => `${span} ago`,
  duration: (seconds) => {
    if (seconds < 60) return `${Math.floor(seconds)} s`;
    if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86_400)
      return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
    return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3_600)} h`;
  },
  number: (value) => number.format(value),
};
