import { createServer, type Server } from 'node:net'
import nodemailer from 'nodemailer'
import { afterEach, describe, expect, test } from 'vitest'
import { type Mailer, smtpMailer } from '../../src'
import { createEvents } from '../../src/core/events'
import { createMailQueue } from '../../src/mail/mail-queue'
import { logTap } from '../support/log-tap'
import { authMail, from } from './auth-mail'
import { startSmtpSink } from './smtp-sink'

const opened: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close()
})

async function startSink(options?: Parameters<typeof startSmtpSink>[0]) {
  const sink = await startSmtpSink(options)
  opened.push(sink)
  return sink
}

/** What the postman makes of it: the events, and the log. */
function watch(mailer: Mailer) {
  const logs = logTap()
  const events = createEvents(logs)
  const failed: object[] = []
  events.on('mail.failed', (payload) => failed.push(payload))
  return { mailQueue: createMailQueue({ mailer, events, logger: logs, concurrency: 5 }), failed, logs }
}

async function until(happened: () => boolean): Promise<void> {
  for (let waited = 0; !happened(); waited += 10) {
    if (waited > 8_000) throw new Error('it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe('a mail over SMTP', () => {
  test('has one recipient, both alternatives in UTF-8, and says that it is automatic', async () => {
    const sink = await startSink()

    await smtpMailer({ from, transport: sink.url }).send(authMail())

    const [delivery, ...others] = sink.deliveries
    expect(others).toEqual([])
    expect(delivery).toMatchObject({ sender: 'no-reply@app.example.test', recipients: ['ana@example.test'] })
    expect(delivery?.email).toMatchObject({
      from: { name: 'Farol & Cia, São Paulo', address: 'no-reply@app.example.test' },
      to: [{ name: '', address: 'ana@example.test' }],
      subject: 'Ação necessária: confirme seu endereço',
      text: expect.stringMatching(/^Olá, Ana!\n\nhttps:\/\/app\.example\.test\/TOKEN\n+$/),
      html: expect.stringMatching(/^<p>Olá, Ana!<\/p>\n*$/),
    })
    expect(delivery?.raw).toMatch(/^Content-Type: multipart\/alternative;/m)
    expect(delivery?.email.headers).toContainEqual(expect.objectContaining({ key: 'auto-submitted', value: 'auto-generated' }))
    expect(delivery?.email.headers).toContainEqual(expect.objectContaining({ key: 'x-auto-response-suppress', value: 'All' }))
    expect(delivery?.email.cc).toBeUndefined()
    expect(delivery?.email.bcc).toBeUndefined()
    expect(delivery?.email.attachments).toEqual([])
  })

  test('goes by SMTP options and by a transporter of the host as well', async () => {
    const sink = await startSink()
    const { port } = sink

    await smtpMailer({ from, transport: { host: '127.0.0.1', port } }).send(authMail())
    await smtpMailer({ from, transport: nodemailer.createTransport({ host: '127.0.0.1', port }) }).send(authMail())
    await smtpMailer({ from, url: sink.url }).send(authMail())
    await smtpMailer({ from, host: '127.0.0.1', port }).send(authMail())

    expect(sink.deliveries.map(({ email }) => email.subject)).toEqual(Array(4).fill(authMail().subject))
  })

  test.each([
    ['ana@example.test, eve@example.test'],
    ['ana@example.test\r\nBcc: eve@example.test'],
    ['ana@example.test> SIZE=1\r\nRCPT TO:<eve@example.test'],
    ['"ana@example.test" <eve@example.test>'],
    ['friends: ana@example.test, eve@example.test;'],
    ['ana@example.test\0'],
    [''],
  ])('R-089 to %j is refused before anything is sent', async (to) => {
    const sink = await startSink()

    await expect(smtpMailer({ from, transport: sink.url }).send(authMail({ to }))).rejects.toMatchObject({ retryable: false })
    expect(sink.attempts).toBe(0)
  })

  test('R-089 a subject with line breaks stays one header, and the name is in none', async () => {
    const sink = await startSink()
    const mail = authMail({ subject: 'Hi\r\nBcc: eve@example.test\r\n\r\nbody', name: 'Ana\r\nBcc: eve@example.test' })

    await smtpMailer({ from, transport: sink.url }).send(mail)

    const [delivery] = sink.deliveries
    expect(delivery?.email.subject).toBe('Hi Bcc: eve@example.test body')
    expect(delivery?.email.headers.map(({ key }) => key)).not.toContain('bcc')
    expect(delivery?.email.headers.map(({ value }) => value).join('\n')).not.toContain('Ana')
    expect(delivery?.recipients).toEqual(['ana@example.test'])
  })

  test('what looks like a path or a URL is text: nothing is read or fetched', async () => {
    const sink = await startSink()
    const html = { path: '/etc/passwd' } as unknown as string // a template of the host's in plain JavaScript

    await expect(smtpMailer({ from, transport: sink.url }).send(authMail({ html }))).rejects.toMatchObject({ retryable: false })
    expect(sink.deliveries).toEqual([])
  })
})

describe('nothing is sent twice, and nothing is lost silently', () => {
  test('refused for now (4yz), it is sent on the next attempt, once', async () => {
    const sink = await startSink()
    sink.verdict = (attempt) => (attempt === 1 ? 451 : null)
    const { mailQueue, failed } = watch(smtpMailer({ from, transport: sink.url }))

    mailQueue.post(authMail(), 'user-1')
    await until(() => sink.deliveries.length === 1)

    expect(sink.attempts).toBe(2)
    expect(failed).toEqual([])
  })

  test('two hundred mails to a server that takes ten connections at once, and 421 beyond, all arrive; so do those of two apps', async () => {
    const sink = await startCrowdedSink(10)
    const apps = [1, 2, 3].map(() => watch(smtpMailer({ from, transport: sink.url })))
    for (const { mailQueue } of apps) for (let number = 0; number < 67; number++) mailQueue.post(authMail(), 'user-1')
    await until(() => sink.deliveries.length === 201)

    expect(apps.flatMap(({ failed }) => failed)).toEqual([])
    expect(sink.mostAtOnce()).toBeLessThanOrEqual(10)
  })

  test('two hundred mails handed over at once share five connections, and no connection is left behind', async () => {
    const sink = await startCrowdedSink(10)
    const mailer = smtpMailer({ from, transport: sink.url })
    await Promise.all(Array.from({ length: 200 }, () => mailer.send(authMail())))

    expect([sink.deliveries.length, sink.mostAtOnce(), sink.refused()]).toEqual([200, 5, 0])
    await until(() => sink.open() === 0)
    await mailer.send(authMail())
    expect(sink.deliveries).toHaveLength(201)
  })

  test('refused for good (5yz), it is not tried again, and an event says so without the address', async () => {
    const sink = await startSink({
      onRcptTo: ({ address }, _session, done) => done(Object.assign(new Error(`no ${address} here`), { responseCode: 550 })),
    })
    const { mailQueue, failed, logs } = watch(smtpMailer({ from, transport: sink.url }))

    mailQueue.post(authMail(), 'user-1')
    await until(() => failed.length === 1)

    expect(failed).toEqual([{ userId: 'user-1', kind: 'activation', reason: 'refused' }])
    expect(logs.entries).toEqual([
      expect.objectContaining({ fields: expect.objectContaining({ error: expect.objectContaining({ code: 'EENVELOPE_550' }) }) }),
    ])
    expect(logs.text()).not.toMatch(/ana@|TOKEN/)
    await expect(smtpMailer({ from, transport: sink.url }).send(authMail())).rejects.toMatchObject({ retryable: false })
  })

  test('taken, and the connection lost before the reply: delivered once, reported as unknown, with and without a pool', async () => {
    const watched = [false, true].map(async (pool) => {
      const sink = await startSink()
      sink.verdict = () => 'cut'
      const { mailQueue, failed } = watch(smtpMailer({ from, transport: { host: '127.0.0.1', port: sink.port, pool } }))
      mailQueue.post(authMail(), 'user-1')
      return { sink, failed }
    })
    const both = await Promise.all(watched)
    await until(() => both.every(({ failed }) => failed.length === 1))
    await new Promise((resolve) => setTimeout(resolve, 1_300)) // past the pause before a second attempt

    for (const { sink, failed } of both) {
      expect(failed).toEqual([{ userId: 'user-1', kind: 'activation', reason: 'unknown' }])
      expect(sink.deliveries).toHaveLength(1)
    }
  })

  test('a server that is down or does not greet: not sent, to be tried again', async () => {
    const sink = await startSmtpSink()
    await sink.close()
    const silent = await listenSilently()

    for (const transport of [sink.url, { host: '127.0.0.1', port: silent, greetingTimeout: 50 }])
      await expect(smtpMailer({ from, transport }).send(authMail())).rejects.toMatchObject({ name: 'SmtpError', retryable: true })
  })

  test.each([
    [{ responseCode: 421, code: 'ECONNECTION', command: 'CONN' }, { retryable: true }],
    [{ responseCode: 454, code: 'EAUTH' }, { retryable: true }],
    [
      { responseCode: 535, code: 'EAUTH' },
      { retryable: false, code: 'EAUTH_535' },
    ],
    [
      { code: 'ETIMEDOUT', timeoutType: 'SOCKET_TIMEOUT', command: 'CONN' },
      { retryable: false, outcome: 'unknown' },
    ],
    [{ code: 'ETIMEDOUT', timeoutType: 'CONNECT_TIMEOUT', command: 'CONN' }, { retryable: true }],
    [
      { code: 'ESOCKET', originalCode: 'ECONNRESET', syscall: 'read', command: 'CONN' },
      { retryable: false, outcome: 'unknown' },
    ],
    [{ code: 'ETIMEDOUT', message: 'Connection timeout', command: 'CONN' }, { retryable: true }],
    [
      { code: 'ETIMEDOUT', message: 'Timeout', command: 'CONN' },
      { retryable: false, outcome: 'unknown' },
    ],
    [{ code: 'ESOCKET', originalCode: 'EHOSTUNREACH', syscall: 'connect', command: 'CONN' }, { retryable: true }],
    [{ code: 'ESOCKET', originalCode: 'ERR_TLS_CERT_ALTNAME_INVALID' }, { retryable: false }],
    [{ code: 'ECONNECTION', command: 'API' }, { retryable: true }],
    [{ code: 'EDNS', originalCode: 'ENOTFOUND', command: 'CONN' }, { retryable: true }],
    ['a string', { retryable: false, outcome: 'unknown' }],
  ])('%j of a transporter is %j', async (error, verdict) => {
    const transport = { sendMail: () => Promise.reject(error) }

    await expect(smtpMailer({ from, transport }).send(authMail())).rejects.toMatchObject(verdict)
  })

  test('a transporter that took the mail and refused its recipient did not send it', async () => {
    const transport = { sendMail: async () => ({ accepted: [], rejected: ['ana@example.test'] }) }

    await expect(smtpMailer({ from, transport }).send(authMail())).rejects.toMatchObject({ retryable: false, code: 'EENVELOPE' })
  })

  test('a mailer may say of its error that it is final, or that nobody knows', async () => {
    const reasons = []
    for (const facts of [{ retryable: false }, { outcome: 'unknown' }, { outcome: 'unknown', retryable: true }]) {
      let calls = 0
      const { mailQueue, failed } = watch({
        send: async () => {
          calls++
          throw Object.assign(new Error('no'), facts)
        },
      })
      mailQueue.post(authMail(), 'user-1')
      await until(() => failed.length === 1)
      reasons.push([calls, ...failed])
    }

    const event = { userId: 'user-1', kind: 'activation' }
    expect(reasons).toEqual(['refused', 'unknown', 'unknown'].map((reason) => [1, { ...event, reason }]))
  })

  test('a mail whose leave cannot be asked for is reported', async () => {
    const { mailQueue, failed } = watch({ send: () => Promise.reject(new Error('never called')) })

    mailQueue.post(authMail(), 'user-1', () => Promise.reject(new Error('the counters are gone')))
    await until(() => failed.length === 1)

    expect(failed).toEqual([{ userId: 'user-1', kind: 'activation', reason: 'refused' }])
  })
})

// 0.0.0.0 reaches this machine without being called loopback.
describe('TLS', () => {
  test('is required of any server but this machine: one without STARTTLS gets nothing', async () => {
    const sink = await startSink()

    await expect(smtpMailer({ from, transport: `smtp://0.0.0.0:${sink.port}` }).send(authMail())).rejects.toMatchObject({
      retryable: false,
    })
    expect(sink.attempts).toBe(0)
    await smtpMailer({ from, transport: { host: '0.0.0.0', port: sink.port, requireTLS: false } }).send(authMail())
    expect(sink.deliveries.map(({ tls }) => tls)).toEqual([false])
  })

  test('takes no certificate that nobody vouches for, unless the host says so', async () => {
    const sink = await startSink({ disabledCommands: ['AUTH'] })
    const secure = await startSink({ secure: true, disabledCommands: ['AUTH'] })
    const starttls = { host: '0.0.0.0', port: sink.port }

    await expect(smtpMailer({ from, transport: starttls }).send(authMail())).rejects.toThrow('not sent')
    await expect(smtpMailer({ from, transport: `smtps://127.0.0.1:${secure.port}` }).send(authMail())).rejects.toMatchObject({
      retryable: false,
    })
    expect([sink.attempts, secure.attempts]).toEqual([0, 0])
    await smtpMailer({ from, transport: { ...starttls, tls: { rejectUnauthorized: false } } }).send(authMail())
    expect(sink.deliveries.map(({ tls }) => tls)).toEqual([true])
  })

  test('is used with this machine where it is offered, whatever its certificate', async () => {
    const sink = await startSink({ disabledCommands: ['AUTH'] })

    await smtpMailer({ from, transport: sink.url }).send(authMail())
    expect(sink.deliveries.map(({ tls }) => tls)).toEqual([true])
  })
})

/** A server that answers 421 to every connection beyond so many. */
async function startCrowdedSink(limit: number) {
  let [open, most, refused] = [0, 0, 0]
  const counted = new Set<string>()
  const sink = await startSink({
    onConnect(session, done) {
      if (open >= limit) {
        refused++
        return done(Object.assign(new Error('too many connections'), { responseCode: 421 }))
      }
      counted.add(session.id)
      most = Math.max(most, ++open)
      done()
    },
    onClose(session) {
      if (counted.delete(session.id)) open--
    },
  })
  return Object.assign(sink, { open: () => open, mostAtOnce: () => most, refused: () => refused })
}

async function listenSilently(): Promise<number> {
  const server: Server = createServer(() => {})
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  opened.push({ close: () => server.close() })
  return (server.address() as { port: number }).port // listens on TCP
}
