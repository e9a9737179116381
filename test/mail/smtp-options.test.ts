import { createRequire } from 'node:module'
import nodemailer from 'nodemailer'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError, smtpMailer } from '../../src'
import { hidePackages, showPackages } from '../passwords/hidden-packages'
import { authMail, from } from './auth-mail'

afterEach(showPackages)
afterEach(() => void vi.restoreAllMocks())

describe('at construction', () => {
  test.each<[string, unknown]>([
    ['no options', undefined],
    ['no from', { transport: 'smtp://127.0.0.1' }],
    ['a from with two addresses', { from: 'a@app.example.test, b@app.example.test', transport: 'smtp://127.0.0.1' }],
    ['a from with a line break', { from: 'App\r\nBcc: eve@app.example.test <a@app.example.test>', transport: 'smtp://127.0.0.1' }],
    ['a from without an address', { from: 'App', transport: 'smtp://127.0.0.1' }],
    ['no transport', { from }],
    ['a URL of another kind', { from, transport: 'https://user:hunter2@mail.example.test' }],
    ['a URL without a host', { from, transport: 'smtp://' }],
    ['a password in a URL that is not percent-encoded', { from, url: 'smtp://user:hunter2%@mail.example.test' }],
    ['a host that was forgotten', { from, transport: { host: undefined, port: 587 } }],
    ['a transport that sends nothing', { from, transport: { jsonTransport: true, host: 'mail.example.test' } }],
    ['a pool that repeats', { from, transport: nodemailer.createTransport({ pool: true, host: 'mail.example.test' }) }],
    ['a transport beside a host', { from, transport: 'smtp://127.0.0.1', host: 'mail.example.test' }],
    ['a pool of nodemailer before 6.4.3', { from, transport: poolOf('6.4.2[client:6.4.2]', 0) }],
    ['a pool of a later nodemailer without a bound', { from, transport: poolOf('6.10.1[client:6.10.1]') }],
    ['an option that does not exist', { from, transport: 'smtp://127.0.0.1', transports: 1 }],
  ])('%s is refused, and no value is repeated', (_what, options) => {
    const build = () => smtpMailer(options as never)

    expect(build).toThrow(ConfigurationError)
    expect(build).toThrow(/^(?!.*(?:hunter2|app\.example\.test|mail\.example)).*$/)
  })

  test('transport excludes the options of a server, and says so', () => {
    const both = { from, transport: 'smtp://127.0.0.1', host: '127.0.0.1', auth: {} }

    expect(() => smtpMailer(both)).toThrow('smtpMailer: transport excludes host and auth; pass one or the other.')
  })

  test('a URL is read here: nodemailer before 10 would ignore the options beside it', () => {
    const made: unknown[] = []
    vi.spyOn(createRequire(import.meta.url)('nodemailer'), 'createTransport').mockImplementation((options: unknown) => {
      made.push(options)
      return { sendMail: async () => {} } as never
    })

    smtpMailer({ from, url: 'smtp://ana%40x:p%25w@mail.example.test:2525?name=app&pool=true&socketTimeout=5000&tls.servername=smtp.x' })
    smtpMailer({ from, url: 'smtps://[::1]' })

    expect(made).toEqual([
      expect.objectContaining({
        host: 'mail.example.test',
        port: 2525,
        secure: false,
        requireTLS: true,
        auth: { user: 'ana@x', pass: 'p%w' },
        name: 'app',
        pool: true,
        maxRequeues: 0,
        socketTimeout: 5000,
        tls: { servername: 'smtp.x' },
      }),
      expect.objectContaining({ host: '::1', secure: true }),
    ])
    expect(made.filter((options) => Object.hasOwn(Object(options), 'url'))).toEqual([])
  })

  test('a service beside the name of this machine still needs TLS, because it brings a host of its own', () => {
    const made: object[] = []
    vi.spyOn(createRequire(import.meta.url)('nodemailer'), 'createTransport').mockImplementation((options: unknown) => {
      made.push(Object(options))
      return { sendMail: async () => {} } as never
    })

    smtpMailer({ from, transport: { host: 'localhost', service: 'SendGrid' } })
    smtpMailer({ from, url: 'smtp://localhost?service=SendGrid' })

    for (const options of made) expect(options).toMatchObject({ requireTLS: true })
    for (const options of made) expect(options).not.toHaveProperty('tls')
  })

  test('a ready transporter needs no nodemailer of ours, and is never closed', async () => {
    hidePackages('nodemailer')
    const calls: string[] = []
    const transport = { sendMail: async () => void calls.push('sendMail'), close: () => void calls.push('close') }

    await smtpMailer({ from, transport }).send(authMail())

    expect(calls).toEqual(['sendMail'])
    expect(() => smtpMailer({ from, transport: poolOf('6.4.3[client:6.4.3]', 0) })).not.toThrow()
  })

  test('without nodemailer a sentence says what to install', () => {
    hidePackages('nodemailer')

    expect(() => smtpMailer({ from, transport: 'smtp://127.0.0.1' })).toThrow(
      new ConfigurationError(
        'smtpMailer needs the package nodemailer; run `npm install nodemailer`. See docs/troubleshooting.md#a-package-is-missing',
      ),
    )
  })
})

/** As nodemailer shows a pool. */
function poolOf(version: string, maxRequeues?: number): object {
  const options = { pool: true, ...(maxRequeues !== undefined && { maxRequeues }) }
  return { sendMail: async () => {}, transporter: { version, options } }
}
