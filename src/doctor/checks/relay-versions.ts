import { CannotLook, type Check } from '../check.js';
import { aliveRelays } from '../patient.js';

export const relayVersions: Check = {
  name: 'relay-versions',
  group: 'relays',
  looksFor: 'relays of different versions of this package',
  why: 'during a deployment that is as it should be; if it stays, a process was forgotten, with the faults of its version',
  needs: 'store',
  async examine(patient) {
    const alive = await aliveRelays(patient);
    if (alive === undefined) throw new CannotLook('the store keeps no reports of relays');
    const versions = [...new Set(alive.map(({ version }) => version))].toSorted();
    if (versions.length < 2) return [];
    const told = versions.map((version) => {
      const names = alive.filter((relay) => relay.version === version).map(({ name }) => name);
      return `${version} on ${names.join(', ')}`;
    });
    return [
      {
        level: 'warning',
        what: `relays of ${versions.length} versions are alive: ${told.join('; ')}`,
        fix: 'finish the deployment: stop the processes with the older version',
      },
    ];
  },
};
