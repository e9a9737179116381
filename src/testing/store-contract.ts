import assert from 'node:assert/strict'
import type { AuthStore, CompleteStore } from '../store/auth-store'
import { EMAIL_LOGIN_CASES } from './email-login-cases'
import { hostFieldCases } from './host-field-cases'
import { IDENTITY_CASES } from './identity-cases'
import { LOGIN_CASES } from './login-cases'
import { PASSKEY_CASES } from './passkey-cases'
import { RECOVERY_CODE_CASES } from './recovery-code-cases'
import { ROTATION_CASES } from './rotation-cases'
import { SESSION_CASES } from './session-cases'
import { UNIT_CASES } from './unit-cases'
import { USER_CASES } from './user-cases'
import { USER_LIST_CASES } from './user-list-cases'
import { USER_TOKEN_CASES } from './user-token-cases'

type OptionalTable = 'identities' | 'recoveryCodes' | 'passkeys' | 'sessions' | 'emailLogins'

export interface StoreContractOptions {
  /** May return the same store every time: each case works on users of its own, and expects no empty store. */
  makeStore(): Promise<AuthStore>
  /** The optional tables your adapter leaves out; their cases are left out too. */
  without?: readonly OptionalTable[]
  /** Where your adapter knows fields of the host (`users.hostFields`): a store that has two text fields, null in a row without them. */
  hostFields?: {
    /** A store without rows that has the two fields. */
    makeStore(): Promise<AuthStore>
    /** The names of the fields. */
    names: readonly [string, string]
  }
}

/** One promise of an AuthStore. `run` rejects with an AssertionError when it is not kept. */
export interface StoreCase {
  readonly name: string
  run(): Promise<void>
}

/**
 * What an AuthStore promises, as named cases for any test runner:
 * `for (const { name, run } of storeContract({ makeStore })) test(name, run)`.
 */
export function storeContract({ makeStore, without = [], hostFields }: StoreContractOptions): readonly StoreCase[] {
  const sections = SECTIONS.filter(({ table }) => !table || !without.includes(table))
  return [
    ...sections.flatMap(({ table, cases }) => casesOf(cases, makeStore, table)),
    ...(hostFields ? casesOf(hostFieldCases(hostFields.names), hostFields.makeStore, null) : []),
  ]
}

function casesOf(cases: Cases, makeStore: () => Promise<AuthStore>, table: OptionalTable | null): StoreCase[] {
  return cases.map(([name, check]) => ({ name, run: async () => check(withTable(await makeStore(), table)) }))
}

/** The name and what must hold. A case of a section may use the tables every store has, and the section's own. */
export type Cases = readonly (readonly [name: string, check: (store: CompleteStore) => Promise<void>])[]

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
  { table: null, cases: UNIT_CASES },
]

function withTable(store: AuthStore, table: OptionalTable | null): CompleteStore {
  if (table) assert.ok(store[table], `the store has no ${table}; name it in \`without\` if that is meant`)
  return store as CompleteStore // the section uses no other optional table unless it finds it
}
