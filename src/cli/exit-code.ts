/** What scripts branch on. */
export const EXIT = Object.freeze({
  /** Done, or looked and all is well. */
  fine: 0,
  /** The database cannot be reached, refuses, or is of another version. */
  failed: 1,
  /** The command line says something that cannot be meant. */
  usage: 2,
  /** It has looked, and something is not right. */
  notRight: 3,
  /** Stopped with Ctrl+C; what was done until then is done. */
  interrupted: 130,
});
