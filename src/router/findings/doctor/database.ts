import { sentenceOf } from '../../../core/error-sentence'
import type { TableFinding } from '../../../store/auth-store'
import { givesKeysAgain } from '../../../store/knex/check/reused-keys'
import { unverifiedFactors, unverifiedWithoutFactor } from '../../../store/knex/check/unverified-factors'
import { databaseFacts } from '../../../store/knex/database-facts'
import { countWaiting, mostWaiting, purgeLease } from '../../../store/knex/purge-state'
import { answerOf, type Check, error, type Fault, type Patient, type Result, type Skip, warning } from './check'

export const databaseChecks: readonly Check[] = [
  { name: 'tables', examine: tables },
  { name: 'tables-unchecked', examine: uncheckedTables },
  { name: 'database-clock', examine: databaseClock },
  { name: 'database-pool', examine: databasePool },
  { name: 'database-in-memory', examine: inMemory },
  { name: 'database-writers', examine: severalWriters },
  { name: 'sessions-missing', examine: missingSessions },
  { name: 'proofs-missing', examine: missingProofs },
  { name: 'factor-unproven', examine: unprovenFactors },
  { name: 'device-unprotected', examine: unprotectedDevices },
  { name: 'purge-overdue', examine: overduePurge },
  { name: 'deletion-overdue', examine: overdueDeletion },
  { name: 'outbox-waiting', examine: waitingOutbox },
  { name: 'ids-reused', examine: reusedIds },
]

const ofAdapter: Skip = { skipped: 'The store is an adapter of your own.' }

/**
 * Checks that the database responds, and that its tables are correct. `auth.ready()` runs the same check. The findings have the same keys.
 */
async function tables({ ctx }: Patient): Promise<Result> {
  if (!ctx.readiness) return { skipped: 'This store has no check of its tables.' }
  try {
    return faultsOf(await answerOf(ctx.readiness.look()))
  } catch (problem) {
    return silent(problem)
  }
}

function faultsOf(findings: readonly TableFinding[]): Fault[] {
  return findings.map(({ level, key, message, fails, sql }) => ({
    level,
    what: `${key}: ${message}`,
    why: level === 'error' ? 'Requests that need the table get 503.' : (fails ?? 'The message above says what follows from it.'),
    fix:
      sql === null
        ? 'The message above says how, or which option maps it. `npx --no-install doorward migrate up` creates our own tables.'
        : sql,
  }))
}

function silent(problem: unknown): Fault {
  return error(
    `The database does not answer: ${sentenceOf(problem)}`,
    'Every request that needs it gets 503.',
    'Check that the database runs, and the connection of your knex.',
  )
}

function uncheckedTables({ options }: Patient): Result {
  if (options.checkTables !== false) return null
  return warning(
    'checkTables is false.',
    'The first request that needs a missing column or unique rule is a 500.',
    'Remove the option; `checkTables: { ignore: […] }` turns single findings off.',
  )
}

async function databaseClock({ ctx, options }: Patient): Promise<Result> {
  const facts = databaseFacts(options.store)
  if (!facts) return ofAdapter
  let now: Date
  try {
    now = await answerOf(facts.now())
  } catch (problem) {
    return ctx.readiness ? { skipped: 'The database does not answer.' } : silent(problem)
  }
  const skewSeconds = Math.round(Math.abs(ctx.now().getTime() - now.getTime()) / 1000)
  if (skewSeconds <= 5) return null
  const report = skewSeconds > 60 ? error : warning
  return report(
    `The clocks of this process and of the database differ by ${skewSeconds} seconds.`,
    'Tokens, links and codes expire too early or too late.',
    'Synchronize both machines (NTP).',
  )
}

function databasePool({ options }: Patient): Result {
  const facts = databaseFacts(options.store)
  if (!facts) return ofAdapter
  if (facts.isSqlite || facts.poolMax > 1) return null
  return warning(
    'The pool of knex has one connection.',
    'Every request waits for the one before it, and a slow query stops all logins.',
    'Give knex a larger pool, for example `pool: { min: 0, max: 10 }`.',
  )
}

function inMemory({ options, isProduction }: Patient): Result {
  const facts = databaseFacts(options.store)
  if (!facts) return ofAdapter
  if (!isProduction || !facts.isInMemory) return null
  return error(
    'The accounts are in a SQLite database in memory.',
    'Every account is gone when the process ends.',
    'Give knex a file: `connection: { filename: … }`.',
  )
}

function severalWriters({ options }: Patient): Result {
  const facts = databaseFacts(options.store)
  if (!facts) return ofAdapter
  if (!facts.isSqlite || facts.poolMax === 1) return null
  return warning(
    `The pool of knex has ${facts.poolMax} connections to SQLite.`,
    'Two transactions at once stop the whole process for up to five seconds.',
    'Give knex `pool: { min: 1, max: 1 }`.',
  )
}

function missingSessions({ ctx }: Patient): Result {
  if (ctx.store.sessions) return null
  return warning(
    'The store keeps no sessions.',
    'A refresh token works until it expires, any number of times, and no logout revokes it.',
    'Remove `sessions: false` from createKnexStore(), or add `sessions` to your adapter (docs/store.md).',
  )
}

function missingProofs({ ctx }: Patient): Result {
  if (!ctx.settings.localAccountsEnabled || ctx.store.users.fields.has('emailVerifiedAt')) return null
  return warning(
    'The users table has no column for `emailVerifiedAt`.',
    'A password reset by the owner does not remove what an attacker prepared in the account.',
    'Add the column, or map yours in `users.columns.emailVerifiedAt`.',
  )
}

async function unprovenFactors({ ctx, options }: Patient): Promise<Result> {
  if (!databaseFacts(options.store)) return ofAdapter
  const found = await answerOf(unverifiedFactors(options.store, ctx.now()))
  if (!found || found.count === 0) return null
  const { count, isMost, sql } = found
  const many = isMost ? `${count} or more accounts have` : count === 1 ? '1 account has' : `${count} accounts have`
  const update =
    sql === null
      ? ''
      : ` If you verified these addresses, this statement marks those without a login in the last 30 days. It makes the mailbox the owner of these accounts: ${sql}`
  return warning(
    `${many} a second factor and an unverified address.`,
    'A password reset is the first verification of such an address. So it is a take-over: it removes the second factor, and the person who reads the mailbox gets the account.',
    `Ask these people to verify the address while they are signed in (POST /email-verify/request).${update}`,
  )
}

async function unprotectedDevices({ ctx, options }: Patient): Promise<Result> {
  if (ctx.settings.unknownDevice !== 'code') return null
  if (!databaseFacts(options.store)) return ofAdapter
  const found = await answerOf(unverifiedWithoutFactor(options.store))
  if (!found || found.count === 0) return null
  const many = found.isMost ? `${found.count} or more accounts have` : found.count === 1 ? '1 account has' : `${found.count} accounts have`
  return warning(
    `${many} an unverified address and no second factor.`,
    "unknownDevice 'code' mails no code to such an address, so a guessed password signs in from every browser.",
    'Ask these people to verify the address while they are signed in (POST /email-verify/request).',
  )
}

/** Null: there was none. Undefined: nobody knows, because there is no table for it. */
export async function lastPurge({ store: { leases } }: Patient['options']): Promise<Date | null | undefined> {
  const hasLeases = leases !== undefined && (await answerOf(Promise.resolve(leases.isPresent?.()))) !== false
  return hasLeases ? ((await answerOf(leases.find(purgeLease)))?.ranAt ?? null) : undefined
}

async function overduePurge({ ctx, options }: Patient): Promise<Result> {
  if (!databaseFacts(options.store)) return ofAdapter
  const last = await lastPurge(options)
  if (last === undefined)
    return options.purge === false
      ? { skipped: 'There is no table auth_leases, so nobody knows when the last purge was.' }
      : warning(
          'There is no table auth_leases, so no purge runs by itself.',
          'The tables, their indexes and their backups grow.',
          '`npx --no-install doorward migrate up` creates it. Or set `purge: false`, and run `npx --no-install doorward purge` from a job every day.',
        )
  const age = last && ctx.now().getTime() - last.getTime() // negative: of a clock that ran ahead
  if (age !== null && age >= 0 && age < 86_400_000) return null
  const waiting = Object.entries(await answerOf(countWaiting(options.store, ctx.now()))).filter(([, count]) => count > 0)
  if (waiting.reduce((sum, [, count]) => sum + count, 0) <= mostWaiting) return null
  const rows = waiting.map(([name, count]) => `${count > mostWaiting ? `more than ${mostWaiting}` : count} of ${name}`)
  return warning(
    `${last ? `The last purge ended at ${last.toISOString()}` : 'There was no purge yet'}, and expired rows wait: ${rows.join(', ')}.`,
    'The tables, their indexes and their backups grow.',
    options.purge === false
      ? 'Remove `purge: false`, or run `npx --no-install doorward purge` from a job every day.'
      : 'Keep a process of the app running for the minutes of `purge.everyMinutes`. If the log says that the purge failed, fix that. `npx --no-install doorward purge` purges at once.',
  )
}

async function overdueDeletion({ ctx }: Patient): Promise<Result> {
  const { accountDeletion, accountDeletionDays } = ctx.settings
  const { users } = ctx.store
  if (accountDeletion === 'off' || !users.listDeletions) return null
  const by = new Date(ctx.now().getTime() - (accountDeletionDays + 1) * 86_400_000)
  const [longest] = await answerOf(users.listDeletions({ by, after: null, most: 1 }))
  if (!longest) return null
  return warning(
    `The deletion of account ${longest.id} has been due for over a day.`,
    'The person was told when the account would be gone.',
    'Run `npx --no-install doorward purge`. If the log then says `an account could not be deleted`, fix what it names.',
  )
}

const longestWaitSeconds = 3_600

async function waitingOutbox({ ctx, options }: Patient): Promise<Result> {
  const { outbox } = ctx.store
  if (!options.outbox || !outbox) return null
  const { waiting, failing, oldestAt } = await answerOf(outbox.status())
  const seconds = oldestAt === null ? 0 : (ctx.now().getTime() - oldestAt.getTime()) / 1000
  if (seconds < longestWaitSeconds) return null
  return warning(
    `${waiting} events of the outbox wait, ${failing} of them after a failed delivery. The oldest is of ${oldestAt?.toISOString()}.`,
    'Other systems do not hear of these changes.',
    failing > 0
      ? 'See the log line `an event of the outbox could not be delivered`. `auth.outbox.discard(id)` gives an event up.'
      : 'Call `auth.outbox.deliver(handler)` in a process of the app.',
  )
}

async function reusedIds({ options }: Patient): Promise<Result> {
  const isReused = await answerOf(givesKeysAgain(options.store))
  if (isReused === null) return ofAdapter
  if (!isReused) return null
  return warning(
    'The database gives the id of a deleted account to a new one.',
    'A row of yours that kept the id then belongs to another person.',
    'On SQLite, declare the key as `integer primary key autoincrement`. On MySQL, use version 8 or later. Or use UUIDs as keys.',
  )
}
