/** Something that a test opened and has to close: a child process, a database, a proxy. */
export interface Resource {
  /** Until when it may stay: the end of the test, or of the test file. */
  scope: ResourceScope;
  /** For the message when it is still there then. */
  describe(): string;
  /** Ends it then, so that one leak does not become the next test's trouble. */
  end(): Promise<unknown>;
  /** Where it was opened: the frames of a stack trace. */
  openedAt: string;
}

export type ResourceScope = 'test' | 'file';

// On the global object, because the environment (environment.mjs) looks from outside the sandbox.
const { openResources } = Object.assign(globalThis, { openResources: new Set<Resource>() });

/** Registers it; call the answer when it has been closed. */
export function opened(resource: Omit<Resource, 'openedAt'>): () => void {
  const [, ...frames] = (new Error('opened').stack ?? '').split('\n');
  // The test and not the helper, so that the message shows the line that has to change.
  const outside = frames.filter(
    (frame) => frame.includes('.test.') || !frame.includes('/support/'),
  );
  const entry = { ...resource, openedAt: outside.join('\n') };
  openResources.add(entry);
  return () => void openResources.delete(entry);
}
