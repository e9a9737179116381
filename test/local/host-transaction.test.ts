import { describe, expect, test } from 'vitest'
import { ACTIVATION_WITHHELD, type AuthEventName, type AuthService, type CounterStore, createKnexStore, memoryCounters } from '../../src'
import { addIdentity, addUser, rowCounts } from '../social/accounts-at-hand'
import { databases } from '../support/databases'
import {
  isAlive,
  type LocalHost,
  mailsTo,
  newAddress,
  onLocal,
  otherPassword,
  password,
  pending,
  post,
  resetLink,
  settled,
  signedIn,
  tokenRows,
  userOf,
} from './people'

const names: AuthEventName[] = [
  'signup',
  'activation',
  'login',
  'password.changed',
  'account.deactivated',
  'session.revoked',
  'identity.unlinked',
  'account.taken_over',
]

function listen(host: LocalHost): string[] {
  const told: string[] = []
  for (const name of names) host.auth.events.on(name, () => told.push(name))
  return told
}

/** What an operation of the service, inside the host's transaction, leaves once that is over. */
interface Operation {
  what: string
  /** Everything it needs, made before; returns the operation. */
  prepare(host: LocalHost): Promise<{ email: string; run(service: AuthService): Promise<unknown> }>
  events: string[]
  /** Kinds of mail. */
  mails: string[]
}

const operations: Operation[] = [
  {
    what: 'signUp',
    async prepare() {
      const email = newAddress()
      return { email, run: (service) => service.signUp({ email, password }) }
    },
    events: ['signup'],
    mails: ['activation'],
  },
  {
    what: 'logIn',
    async prepare(host) {
      const { email } = await addUser(host.knex, { email: newAddress(), hashedPassword: await host.hasher.hash(password) })
      return { email, run: (service) => service.logIn({ email, password }) }
    },
    events: ['login'],
    mails: [],
  },
  {
    what: 'activate',
    async prepare(host) {
      const { email, userId, link } = await pending(host)
      await addIdentity(host.knex, userId, { provider: 'attic' })
      return { email, run: (service) => service.activate(link) }
    },
    events: ['account.taken_over', 'activation', 'identity.unlinked', 'login'],
    mails: ['notice'],
  },
  {
    what: 'requestActivation',
    async prepare(host) {
      const { email } = await addUser(host.knex, { email: newAddress(), isActive: false, activatedAt: null })
      return { email, run: (service) => service.requestActivation(email) }
    },
    events: [],
    mails: ['activation'],
  },
  {
    what: 'requestPasswordReset',
    async prepare(host) {
      const { email } = await addUser(host.knex, { email: newAddress() })
      return { email, run: (service) => service.requestPasswordReset(email) }
    },
    events: [],
    mails: ['password_reset'],
  },
  {
    what: 'resetPassword',
    async prepare(host) {
      const { email } = await signedIn(host)
      const token = await resetLink(host, email)
      return { email, run: (service) => service.resetPassword({ token, newPassword: otherPassword }) }
    },
    events: ['password.changed', 'login'],
    mails: ['notice'],
  },
  {
    what: 'changePassword',
    async prepare(host) {
      const { email, userId } = await signedIn(host)
      return { email, run: (service) => service.changePassword({ userId, currentPassword: password, newPassword: otherPassword }) }
    },
    events: ['password.changed'],
    mails: ['notice'],
  },
  {
    what: 'deactivate',
    async prepare(host) {
      const { email, userId } = await signedIn(host)
      return { email, run: (service) => service.deactivate(userId) }
    },
    events: ['account.deactivated'],
    mails: [],
  },
  {
    what: 'revokeSessions',
    async prepare(host) {
      const { email, userId } = await signedIn(host)
      return { email, run: (service) => service.revokeSessions(userId) }
    },
    events: ['session.revoked'],
    mails: [],
  },
]

describe.each(await databases())('inside the host’s own transaction, on $name', (database) => {
  const { start } = onLocal(database)

  /** Every row that could have changed, and what left the house. */
  async function stateOf(host: LocalHost, email: string) {
    const user = await createKnexStore({ knex: host.knex }).users.findByEmail(email)
    return { user, tokens: user && (await tokenRows(host, user.id)), counts: await rowCounts(host.knex) }
  }

  test.each(operations)('$what: the host’s rollback leaves no row, no event and no mail', async ({ prepare }) => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const { email, run } = await prepare(host)
    await new Promise((resolve) => setImmediate(resolve))
    const told = listen(host)
    const [before, mailsBefore] = [await stateOf(host, email), host.mails.mails.length]
    const store = createKnexStore({ knex: host.knex })

    const work = host.knex.transaction(async (trx) => {
      await run(host.auth.service.using(store.using(trx)))
      throw new Error('the host changed its mind')
    })

    await expect(work).rejects.toThrow('the host changed its mind')
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(await stateOf(host, email)).toEqual(before)
    expect([told, host.mails.mails.length]).toEqual([[], mailsBefore])
  })

  test.each(operations)('$what: events and mails wait for the host’s commit, and follow it', async ({ prepare, events, mails }) => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const { email, run } = await prepare(host)
    await new Promise((resolve) => setImmediate(resolve))
    const told = listen(host)
    const mailsBefore = host.mails.mails.length
    const store = createKnexStore({ knex: host.knex })

    const early = await host.knex.transaction(async (trx) => {
      await run(host.auth.service.using(store.using(trx)))
      await new Promise((resolve) => setTimeout(resolve, 10))
      return [[...told], host.mails.mails.length]
    })

    expect(early).toEqual([[], mailsBefore])
    await settled(host)
    const sent = host.mails.mails.slice(mailsBefore).filter(({ to }) => to === email)
    expect(sent.map(({ kind }) => kind)).toEqual(mails)
    expect(told.sort()).toEqual([...events].sort())
  })

  test.each(['commit', 'rollback'])('with counters that take their time a notice still follows the %s', async (ending) => {
    const memory = memoryCounters()
    const slowly = async <T>(work: () => Promise<T>): Promise<T> => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      return work()
    }
    const counters: CounterStore = {
      increment: (key, seconds) => slowly(() => memory.increment(key, seconds)),
      decrement: (key) => slowly(() => memory.decrement(key)),
      reset: (key) => slowly(() => memory.reset(key)),
    }
    const host = await start({ options: { throttle: { counters } } })
    const { email, userId } = await signedIn(host)
    const store = createKnexStore({ knex: host.knex })
    const work = host.knex.transaction(async (trx) => {
      const { service } = host.auth
      await service.using(store.using(trx)).changePassword({ userId, currentPassword: password, newPassword: otherPassword })
      if (ending === 'rollback') throw new Error('rollback')
    })
    await work.catch(() => undefined)

    await settled(host)
    expect(mailsTo(host, email)).toEqual(ending === 'commit' ? ['notice'] : [])
  })

  test('a signup and a row of the host are one: after the commit the mailed link works, beside the host’s row', async () => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const store = createKnexStore({ knex: host.knex })
    const email = newAddress()
    await host.knex.schema.dropTableIfExists('tenants')
    await host.knex.schema.createTable('tenants', (table) => void table.string('owner', 64))

    await host.knex.transaction(async (trx) => {
      const [user] = await host.auth.service.using(store.using(trx)).signUp({ email, password })
      await trx('tenants').insert({ owner: user.id })
    })

    const mail = await host.mails.next({ kind: 'activation', to: email })
    const token = new URL(String(mail.url)).pathname.split('/').at(-1)
    expect((await post(host, '/activate', { token })).body.user_id).toBe((await host.knex('tenants').first('owner')).owner)
  })

  test('what a refusal would have kept is the host’s to commit: a link spent under EMAIL_LINK_FORBIDDEN', async () => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const strict = await start({ options: { refusesEmailLink: () => true } })
    const store = createKnexStore({ knex: host.knex })
    const { userId, email } = await signedIn(host)
    const token = await resetLink(host, email)
    const confirm = (rethrow: boolean) =>
      host.knex.transaction(async (trx) => {
        const refusal = await strict.auth.service
          .using(store.using(trx))
          .resetPassword({ token, newPassword: otherPassword })
          .catch((error) => error)
        expect(refusal).toMatchObject({ code: 'EMAIL_LINK_FORBIDDEN' })
        if (rethrow) throw refusal
      })

    await confirm(true).catch(() => undefined)
    expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: false }])
    await confirm(false)
    expect(await tokenRows(host, userId)).toMatchObject([{ isUsed: true }])
  })

  test('ACTIVATION_WITHHELD comes out of it too, with the account and without a link', async () => {
    const host = await start({ options: { refusesEmailLink: async () => true } })
    const store = createKnexStore({ knex: host.knex })
    const email = newAddress()

    const [user, link] = await host.knex.transaction((trx) => host.auth.service.using(store.using(trx)).signUp({ email, password }))

    expect([user.isActive, link, await tokenRows(host, user.id)]).toEqual([false, ACTIVATION_WITHHELD, []])
    expect((await userOf(host, email)).id).toBe(user.id)
  })

  test('a session issued inside is alive after the commit, and its token is unknown after a rollback', async () => {
    const host = await start({ settings: { activationBinding: 'strict' } })
    const store = createKnexStore({ knex: host.knex })
    const { email } = await signedIn(host)
    const tokens: string[] = []
    for (const ending of ['commit', 'rollback']) {
      const work = host.knex.transaction(async (trx) => {
        const login = await host.auth.service.using(store.using(trx)).logIn({ email, password })
        if (login.kind === 'session') tokens.push(login.refreshToken)
        if (ending === 'rollback') throw new Error('rollback')
      })
      await work.catch(() => undefined)
    }
    expect(await Promise.all(tokens.map((token) => isAlive(host, token)))).toEqual([true, false])
  })
})
