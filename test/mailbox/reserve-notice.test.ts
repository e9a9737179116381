import { expect, test } from 'vitest'
import { createKnexStore } from '../../src'
import { mailNotice, reserveNotice } from '../../src/accounts/email-links/send-mail'
import { ServiceUnavailableError, TooManyRequestsError } from '../../src/core/errors'
import { beginChange } from '../../src/rate-limits/rate-limiter'
import { createContext } from '../../src/router/create-context'
import { testSecret } from '../support/app'
import { testClock } from '../support/clock'
import { databases } from '../support/databases'
import { fastHasher } from '../support/fast-hasher'
import { mailbox } from '../support/mailbox'

const ana = { id: 'user-1', email: 'ana@example.test', name: 'Ana', emailVerifiedAt: new Date() }

async function context({ hasMailer = true } = {}) {
  const [database] = await databases()
  if (!database) throw new Error('no database answers')
  const { knex, close } = await database.open({ memory: true })
  const mails = mailbox()
  const clock = testClock()
  const ctx = createContext({
    settings: { jwtSecret: testSecret, publicUrl: 'https://app.example.test', backendLinks: true },
    store: createKnexStore({ knex }),
    environment: 'test',
    passwordHasher: fastHasher(),
    checkTables: false,
    logger: { info() {}, warn() {}, error() {} },
    now: clock.now,
    throttle: { mail: { attempts: 1, windowSeconds: 3_600 } },
    ...(hasMailer && { mailer: mails }),
  })
  return { ctx, mails, clock, close }
}

test('X2: a notice with an undo link goes out however many mails went before it, and carries the link', async () => {
  const { ctx, mails, close } = await context()
  const link = { url: 'https://app.example.test/auth/security/undo/x', expiresAt: new Date(ctx.now().getTime() + 60_000) }
  for (let number = 0; number < 30; number++) {
    const notice = reserveNotice(ctx)
    notice.mail(ana, 'password_changed', { link, locale: 'pt-BR' })
    notice.release()
  }
  for (let number = 0; number < 30; number++) {
    const { to, kind, url, locale } = await mails.next()
    expect([to, kind, url, locale]).toEqual([ana.email, 'notice', link.url, 'pt-BR'])
  }
  await close()
})

test('24.3: of other notices twenty a day go to one address, beside one that a stranger causes; observers hear of each that does not', async () => {
  const { ctx, mails, clock, close } = await context()
  const throttled: unknown[] = []
  ctx.events.on('throttled', (payload) => throttled.push(payload))
  const sent = async () => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return mails.mails.length
  }
  for (let number = 0; number < 3; number++) mailNotice(ctx, ana, 'address_taken')
  mailNotice(ctx, ana, 'email_change_taken')
  expect(await sent()).toBe(1)
  for (let number = 0; number < 25; number++) mailNotice(ctx, ana, 'email_change_requested')
  expect(await sent()).toBe(21)
  expect(throttled).toEqual(
    Array(8).fill({ code: 'TOO_MANY_REQUESTS', route: 'mail', keyDigest: expect.any(String), retryAfterSeconds: expect.any(Number) }),
  )
  clock.advance(86_400)
  mailNotice(ctx, ana, 'email_change_requested')
  mailNotice(ctx, ana, 'address_taken')
  expect(await sent()).toBe(23)
  await close()
})

test('a change whose notice finds no room is 503 before anything happened; without a mailer nothing is refused', async () => {
  const { ctx, close } = await context()
  const kept = Array.from({ length: 1_000 }, () => reserveNotice(ctx))
  expect(() => reserveNotice(ctx)).toThrow(ServiceUnavailableError)
  kept[0]?.release()
  reserveNotice(ctx).release()
  await close()

  const without = await context({ hasMailer: false })
  for (let number = 0; number < 1_001; number++) reserveNotice(without.ctx).mail(ana, 'password_changed', { link: null })
  for (let number = 0; number < 11; number++) await beginChange(without.ctx, ana)
  await without.close()
})

test('an account makes ten such changes a day; the eleventh is 429, of another account it is not; a refused one is given back', async () => {
  const { ctx, clock, close } = await context()
  await (await beginChange(ctx, ana)).release()
  for (let number = 0; number < 10; number++) await beginChange(ctx, ana)
  await expect(beginChange(ctx, ana)).rejects.toThrow(TooManyRequestsError)
  await beginChange(ctx, { id: 'user-2' })
  clock.advance(86_399)
  await expect(beginChange(ctx, ana)).rejects.toThrow(TooManyRequestsError)
  clock.advance(1)
  await beginChange(ctx, ana)
  await close()
})
