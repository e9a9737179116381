import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AuthService, createAuthTables } from '../../src'
import { dialectOf } from '../../src/store/knex/dialect-of'
import { virtualAuthenticator } from '../../src/testing'
import { addUser, someTime } from '../social/accounts-at-hand'
import { databases, type OpenDatabase } from '../support/databases'
import { raceTimeout } from '../support/torture'
import { type ProcessPair, type Report, repeat, startPair } from '../support/two-processes'
import { type Call, type Outcome, origin, serviceOn, type Task } from './races-child'

for (const database of await databases()) {
  describe(`two tabs finish one challenge, in two processes on one ${database.name} database`, { timeout: raceTimeout(90_000) }, () => {
    let opened: OpenDatabase
    /** Prepares the race, and looks at what it left behind. */
    let service: AuthService
    let pair: ProcessPair<Task, Outcome[]>

    beforeAll(async () => {
      opened = await database.open()
      await createAuthTables(opened.knex)
      service = serviceOn(opened.knex)
      pair = await startPair(join(import.meta.dirname, 'races-child.ts'), opened)
    }, raceTimeout(60_000))
    afterAll(async () => {
      await pair?.stop()
      await opened?.close()
    })

    const outcomesOf = (report: Report<Outcome[]>): Outcome[] => (Array.isArray(report) ? report : [report.error])
    /** In each process twice, all at once. */
    const race = async (call: Call): Promise<Outcome[]> => (await pair.race([call, call], [call, call])).flatMap(outcomesOf).sort()
    const rowsOf = (table: string, userId: string) => opened.knex(table).where({ user_id: userId })
    const used = async (userId: string) =>
      (await rowsOf('auth_user_tokens', userId)).filter(({ purpose }) => purpose === 'PASSKEY_CHALLENGE').length

    async function owner(changes: Parameters<typeof addUser>[1] = {}) {
      const { id: userId } = await addUser(opened.knex, changes)
      const authenticator = virtualAuthenticator({ origin, counts: true })
      const begun = await service.passkeyRegistrationOptions({ userId })
      const { id: passkeyId } = await service.registerPasskey({
        userId,
        credential: authenticator.create(begun.options),
        challenge: begun.challenge,
      })
      return { userId, authenticator, passkeyId }
    }

    test('of one registration one is stored', async () => {
      await repeat(async () => {
        const { id: userId } = await addUser(opened.knex)
        const { options, challenge } = await service.passkeyRegistrationOptions({ userId })
        const credential = virtualAuthenticator({ origin }).create(options)
        const outcomes = await race({ verb: 'registerPasskey', input: [{ userId, credential, challenge }] })
        expect(outcomes).toEqual(['PASSKEY_INVALID', 'PASSKEY_INVALID', 'PASSKEY_INVALID', 'ok'])
        expect([(await rowsOf('auth_passkeys', userId)).length, await used(userId)]).toEqual([1, 1])
      })
    })

    test('of one credential that two accounts register at once, one has it', async () => {
      await repeat(async () => {
        const [one, other] = [await addUser(opened.knex), await addUser(opened.knex)]
        const authenticator = virtualAuthenticator({ origin })
        const begin = async (userId: string) => ({ userId, ...(await service.passkeyRegistrationOptions({ userId })) })
        const [first, second] = [await begin(one.id), await begin(other.id)]
        const made = authenticator.create(first.options)
        // The same key and id, which another device of the thief's answers with.
        const copied = {
          ...made,
          response: { ...made.response, clientDataJSON: clientDataFor(made.response.clientDataJSON, second.options.challenge) },
        }
        const call = ({ userId, challenge }: typeof first, credential: object): Call => ({
          verb: 'registerPasskey',
          input: [{ userId, credential, challenge }],
        })
        const outcomes = (await pair.race([call(first, made)], [call(second, copied)])).flatMap(outcomesOf).sort()
        expect(outcomes).toEqual(['PASSKEY_TAKEN', 'ok'])
        expect((await rowsOf('auth_passkeys', one.id)).length + (await rowsOf('auth_passkeys', other.id)).length).toBe(1)
      })
    })

    test('of one login one opens a session', async () => {
      await repeat(async () => {
        const { userId, authenticator } = await owner()
        const { options, challenge } = await service.passkeyLoginOptions()
        const outcomes = await race({ verb: 'logInWithPasskey', input: [{ credential: authenticator.get(options), challenge }] })
        expect(outcomes).toEqual(['PASSKEY_REJECTED', 'PASSKEY_REJECTED', 'PASSKEY_REJECTED', 'ok'])
        expect([(await rowsOf('auth_sessions', userId)).length, await used(userId)]).toEqual([1, 2])
      })
    })

    test('of one reauthentication one makes the session fresh', async () => {
      await repeat(async () => {
        const { userId, authenticator, passkeyId } = await owner()
        const begun = await service.passkeyLoginOptions()
        await service.logInWithPasskey({ credential: authenticator.get(begun.options), challenge: begun.challenge })
        await opened
          .knex('auth_passkeys')
          .where({ id: passkeyId })
          .update({ created_at: dialectOf(opened.knex).instantToColumn(someTime) })
        const [session] = await service.listSessions(userId)
        const { options, challenge } = await service.passkeyStepOptions({ userId, sessionId: session?.id })
        const input = { userId, sessionId: session?.id, credential: authenticator.get(options), challenge }
        const outcomes = await race({ verb: 'reauthenticate', input: [input] })
        expect(outcomes).toEqual(['PASSKEY_REJECTED', 'PASSKEY_REJECTED', 'PASSKEY_REJECTED', 'ok'])
      })
    })

    test('a login and the removal of its passkey: whoever is in was in before', async () => {
      await repeat(async () => {
        const { userId, authenticator, passkeyId } = await owner()
        const { options, challenge } = await service.passkeyLoginOptions()
        const login: Call = { verb: 'logInWithPasskey', input: [{ credential: authenticator.get(options), challenge }] }
        const removal: Call = { verb: 'removePasskey', input: [userId, passkeyId] }
        const [outcome] = (await pair.race([login], [removal])).flatMap(outcomesOf)
        expect(['ok', 'PASSKEY_REJECTED']).toContain(outcome)
        expect((await rowsOf('auth_passkeys', userId)).length).toBe(0)
        expect((await rowsOf('auth_sessions', userId)).length).toBe(outcome === 'ok' ? 1 : 0)
      })
    })
  })
}

function clientDataFor(clientDataJSON: string, challenge: string): string {
  const data = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8'))
  return Buffer.from(JSON.stringify({ ...data, challenge })).toString('base64url')
}
