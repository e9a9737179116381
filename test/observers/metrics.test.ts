import { Registry } from 'prom-client'
import { describe, expect, test } from 'vitest'
import { metrics } from '../../src'
import { createEvents } from '../../src/core/events'
import { signIn } from '../support/app'
import { appPerTest } from '../support/app-per-test'
import { logTap } from '../support/log-tap'

const start = appPerTest()
const told = () => new Promise((resolve) => setImmediate(resolve))

describe('metrics', () => {
  test('a registry of prom-client shows what happened, by event and provider, and nobody', async () => {
    const register = new Registry()
    const mounted = await start()
    metrics(register).watch(mounted.auth.events)
    const { body } = await signIn(mounted)
    await signIn(mounted)
    await mounted.browser().post('/auth/login').send({ email: 'ana@example.com', password: 'not the password' })
    await told()

    const text = await register.metrics()
    expect(text).toContain('# TYPE doorward_events_total counter')
    expect(text).toContain('doorward_events_total{event="login",provider="corp"} 2')
    expect(text).toContain('doorward_events_total{event="signup",provider="corp"} 1')
    expect(text).toContain('doorward_events_total{event="login.failed",reason="UNAUTHORIZED"} 1')
    expect(text).not.toContain(body.user_id)
  })

  test('two routers count in one counter, and stop ends it for one', async () => {
    const register = new Registry()
    const [one, other] = [createEvents(logTap()), createEvents(logTap())]
    const stop = metrics(register).watch(one)
    metrics(register).watch(other)
    const refusal = { code: 'TOO_MANY_REQUESTS', route: 'signup', keyDigest: 'digest', retryAfterSeconds: 60 }
    for (const events of [one, other]) events.emit('throttled', refusal)
    await told()
    stop()
    one.emit('throttled', refusal)
    await told()

    expect(await register.metrics()).toContain('{event="throttled",code="TOO_MANY_REQUESTS",route="signup"} 2')
  })

  test('a label has at most a hundred values, and words only; the rest is `other`', async () => {
    const register = new Registry()
    const events = createEvents(logTap())
    metrics(register).watch(events)
    for (let provider = 0; provider < 300; provider++) events.emit('identity.linked', { userId: 'ana', provider: `corp-${provider}` })
    const unknown = { userId: null, addressDigest: null, clientKey: null }
    events.emit('login.failed', { reason: 'a sentence about ana@example.com', ...unknown })
    await told()

    const text = await register.metrics()
    expect(text.match(/^doorward_events_total\{event="identity.linked"/gm)).toHaveLength(101)
    expect(text).toContain('{event="identity.linked",provider="other"} 200')
    expect(text).toContain('{event="login.failed",reason="other"} 1')
  })

  test('what is no registry is refused in a sentence that says what is', () => {
    expect(() => metrics({} as never)).toThrow(/needs a Registry of prom-client/)
  })
})
