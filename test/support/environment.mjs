// @ts-check
import { TestEnvironment } from 'jest-environment-node';

/**
 * Fails a test, or a test file, that leaves something running (see leaks.ts). It is done here and
 * not in an `afterEach`: only here have all of the file's own hooks run.
 */
export default class LeakCheckingEnvironment extends TestEnvironment {
  /**
   * @param {import('@jest/types').Circus.Event} event
   * @param {import('@jest/types').Circus.State} state
   */
  async handleTestEvent(event, state) {
    if (event.name === 'test_done') {
      const leaks = await this.#end((resource) => resource.scope === 'test');
      event.test.errors.push(...leaks);
    }
    if (event.name === 'run_finish') {
      state.unhandledErrors.push(...(await this.#end(() => true)));
    }
  }

  /** @param {(resource: import('./leaks.ts').Resource) => boolean} isDue */
  async #end(isDue) {
    const resources = /** @type {Set<import('./leaks.ts').Resource> | undefined} */ (
      this.global['openResources']
    );
    const leaked = [...(resources ?? [])].filter(isDue);
    const errors = [];
    for (const resource of leaked) {
      resources?.delete(resource);
      const error = new Error(`Left behind by this ${resource.scope}: ${resource.describe()}`);
      error.stack = `${error.message}\n${resource.openedAt}`;
      errors.push(error);
      await resource.end().catch((/** @type {unknown} */ failure) => errors.push(failure));
    }
    return errors;
  }
}
