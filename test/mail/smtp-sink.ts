import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface Delivery {
  /** Of the envelope: what decides who gets it. */
  sender: string
  recipients: string[]
  tls: boolean
  raw: string
  email: Email
}

export interface SmtpSink {
  port: number
  url: string
  /** What the server took, in its order. */
  deliveries: Delivery[]
  /** Mails that reached DATA, refused ones included. */
  attempts: number
  /** Asked once a mail is read; what it answers is refused with, or the connection cut. Default: taken. */
  verdict: ((attempt: number) => number | 'cut' | null) | null
  close(): Promise<void>
}

/** A real SMTP server on loopback that keeps what it gets. TLS, where it is spoken, is by a certificate nobody should trust. */
export async function startSmtpSink(options: SMTPServerOptions = {}): Promise<SmtpSink> {
  const server = new SMTPServer({
    authOptional: true,
    disableReverseLookup: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    ...options,
    onData(stream, session, done) {
      void (async () => {
        const chunks: Buffer[] = []
        for await (const chunk of stream) chunks.push(chunk as Buffer) // a stream of bytes
        sink.attempts++
        const verdict = sink.verdict?.(sink.attempts) ?? null
        if (typeof verdict === 'number') return done(Object.assign(new Error('refused here'), { responseCode: verdict }))
        const raw = Buffer.concat(chunks)
        const { mailFrom, rcptTo } = session.envelope
        sink.deliveries.push({
          sender: mailFrom ? mailFrom.address : '',
          recipients: rcptTo.map(({ address }) => address),
          tls: session.secure,
          raw: raw.toString('utf8'),
          email: await PostalMime.parse(raw),
        })
        if (verdict === 'cut') return cut(server)
        done()
      })().catch(done) // a client that hung up in the middle
    },
  })
  server.on('error', () => {}) // clients that hang up are part of the game
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo // listens on TCP
  const sink: SmtpSink = {
    port,
    url: `smtp://127.0.0.1:${port}`,
    deliveries: [],
    attempts: 0,
    verdict: null,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
  return sink
}

/** The mail was taken, and nobody hears of it. */
function cut(server: SMTPServer): void {
  for (const { _socket: socket } of server.connections) socket.destroy()
}
