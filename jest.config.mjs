/** @type {import('jest').Config} */
export default {
  roots: ['<rootDir>/test'],
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  // Projects of their own, with their own node_modules.
  testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/consumers/'],

  // Nest 12, its event emitter and pg-boss are ES modules.
  extensionsToTreatAsEsm: ['.ts', '.tsx'],
  // Apart: in a .tsx file `<T>(x: T) => x` is an element, in a .ts file it is a function.
  transform: { '^.+\\.ts$': swc({ tsx: false }), '^.+\\.tsx$': swc({ tsx: true }) },
  // Sources import each other as the compiled files will: './x.js'. Real JavaScript comes first,
  // for the packages in node_modules.
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': ['$1.js', '$1.ts', '$1.tsx'] },

  testEnvironment: '<rootDir>/test/support/environment.mjs',
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  reporters: ['default', '<rootDir>/test/support/totals-reporter.mjs'],
  injectGlobals: false,
  maxWorkers: 2,
  testTimeout: 60_000,
};

/**
 * @param {{ tsx: boolean }} syntax
 * @returns {[string, Record<string, unknown>]}
 */
function swc({ tsx }) {
  return [
    '@swc/jest',
    {
      swcrc: false,
      sourceMaps: 'inline',
      module: { type: 'es6' },
      jsc: {
        target: 'es2022',
        parser: { syntax: 'typescript', decorators: true, tsx },
        transform: {
          legacyDecorator: true,
          decoratorMetadata: true,
          verbatimModuleSyntax: true, // as tsc has it: metadata needs the imported classes
          react: { runtime: 'automatic', importSource: 'preact' },
        },
      },
    },
  ];
}
