import assert from 'node:assert/strict'
import type { AuthStore, CompleteStore } from '../store/auth-store'
import type { Cases } from './cases'
import { IDENTITY_CASES } from './identity-cases'
import { INVITATION_CASES, INVITATION_USE_CASES } from './invitation-cases'
import { LEASE_CASES } from './lease-cases'
import { EMAIL_LOGIN_CASES, LOGIN_CASES } from './login-cases'
import { OUTBOX_CASES } from './outbox-cases'
import { PASSKEY_CASES, RECOVERY_CODE_CASES } from './passkey-cases'
import { ROTATION_CASES, SESSION_CASES } from './session-cases'
import { TRUSTED_DEVICE_CASES } from './trusted-device-cases'
import { UNIT_CASES } from './unit-cases'
import { USER_CASES } from './user-cases'
import { hostFieldCases, USER_LIST_CASES } from './user-list-cases'
import { USER_TOKEN_CASES } from './user-token-cases'

type OptionalTable =
  | 'identities'
  | 'recoveryCodes'
  | 'passkeys'
  | 'sessions'
  | 'emailLogins'
  | 'trustedDevices'
  | 'invitations'
  | 'invitationUses'
  | 'outbox'
  | 'leases'

export interface StoreContractOptions {
  /** The store of a case, the same one if you like: each case makes its own users and does not expect an empty store. */
  makeStore(): Promise<AuthStore>
  /** The optional tables that your adapter does not have. The contract leaves out their cases. */
  without?: readonly OptionalTable[]
  /** For an adapter with fields of the host (`users.hostFields`): a store with two text fields, null in a row without values. */
  hostFields?: {
    /** Returns a store without rows. The store has the two fields. */
    makeStore(): Promise<AuthStore>
    /** The names of the two fields. */
    names: readonly [string, string]
  }
}

/** One rule of an AuthStore. If the store breaks the rule, `run` rejects with an AssertionError. */
export interface StoreCase {
  readonly name: string
  run(): Promise<void>
}

/** The rules of an AuthStore as named cases: `for (const { name, run } of storeContract({ makeStore })) test(name, run)`. */
export function storeContract({ makeStore, without = [], hostFields }: StoreContractOptions): readonly StoreCase[] {
  const sections = SECTIONS.filter(({ table }) => !table || !without.includes(table))
  return [
    ...sections.flatMap(({ table, cases }) => casesOf(cases, makeStore, table)),
    ...(hostFields ? casesOf(hostFieldCases(hostFields.names), hostFields.makeStore, null) : []),
  ]
}

function casesOf(cases: Cases, makeStore: () => Promise<AuthStore>, table: OptionalTable | null): StoreCase[] {
  const run = (check: Cases[number][1]) => async () => {
    const store = await makeStore()
    if (!isNewerThan(store, table)) await check(withTable(store, table))
  }
  return cases.map(([name, check]) => ({ name, run: run(check) }))
}

const newTables: readonly OptionalTable[] = ['trustedDevices', 'invitations', 'invitationUses', 'outbox', 'leases']

/** An adapter from before this table existed still follows the contract. */
function isNewerThan(store: AuthStore, table: OptionalTable | null): boolean {
  return table !== null && newTables.includes(table) && store[table] === undefined
}

const SECTIONS: readonly { table: OptionalTable | null; cases: Cases }[] = [
  { table: null, cases: USER_CASES },
  { table: null, cases: LOGIN_CASES },
  { table: null, cases: USER_LIST_CASES },
  { table: null, cases: USER_TOKEN_CASES },
  { table: 'identities', cases: IDENTITY_CASES },
  { table: 'recoveryCodes', cases: RECOVERY_CODE_CASES },
  { table: 'passkeys', cases: PASSKEY_CASES },
  { table: 'sessions', cases: SESSION_CASES },
  { table: 'sessions', cases: ROTATION_CASES },
  { table: 'emailLogins', cases: EMAIL_LOGIN_CASES },
  { table: 'trustedDevices', cases: TRUSTED_DEVICE_CASES },
  { table: 'invitations', cases: INVITATION_CASES },
  { table: 'invitationUses', cases: INVITATION_USE_CASES },
  { table: 'outbox', cases: OUTBOX_CASES },
  { table: 'leases', cases: LEASE_CASES },
  { table: null, cases: UNIT_CASES },
]

function withTable(store: AuthStore, table: OptionalTable | null): CompleteStore {
  if (table) assert.ok(store[table], `the store has no ${table}; name it in \`without\` if that is meant`)
  return store as CompleteStore // a section uses another optional table only if the store has it
}
