import { connect } from 'node:net'
import { Pool } from 'undici'
import { sentAnyway } from '../../support/cookie-check'
import { type FuzzHost, type Persona, segments } from './fuzz-host'
import { type Body, damaged, Live, type LiveKind, type Quirk, type Twist, type Wish } from './wish'

export interface Asked {
  method: string
  target: string
  headers: [name: string, value: string][]
  body: Buffer | null
  quirk: Quirk | null
}

export interface Answered {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
}

/** A form's field may be wished to be no text at all. */
type Fill = (value: unknown) => string

/** The wish with everybody's values of this moment in it. */
export function askedFor(wish: Wish, personas: readonly Persona[]): Asked {
  const fill = (value: unknown) =>
    value instanceof Live ? lived(value, wish, personas) : typeof value === 'string' ? value : JSON.stringify(value)
  const query = wish.query.map(({ name, value, raw }) => (raw ? `${name}=${fill(value)}` : `${escaped(name)}=${escaped(fill(value))}`))
  const cookies = wish.cookies.map(({ name, value }) => `${name}=${escaped(fill(value))}`)
  const { type, bytes } = written(wish.body, fill)
  const headers = wish.headers.map(({ name, value }): [string, string] => [name, headerText(credential(name, fill(value)))])
  if (cookies.length > 0) headers.push(['Cookie', headerText(cookies.join('; '))])
  headers.push(...Object.entries(sentAnyway('no browser made this request')))
  if (type !== null && !headers.some(([name]) => name === 'Content-Type')) headers.push(['Content-Type', type])
  const target = targetText(`/auth${pathOf(wish, fill)}${query.length > 0 ? `?${query.join('&')}` : ''}`)
  return { method: wish.method, target, headers, body: bytes, quirk: wish.quirk }
}

function lived({ what, neighbour, damage }: Live, { persona, path }: Wish, personas: readonly Persona[]): string {
  const who = personas[(persona + neighbour) % personas.length]
  return damaged(valueOfKind(what, path, who, personas) ?? `no-${what}`, damage)
}

function valueOfKind(what: LiveKind, path: string, who: Persona | undefined, personas: readonly Persona[]): string | undefined {
  if (what === 'link') return linkFor(path, who, personas)
  if (what === 'code') return who?.app?.code() ?? '000000'
  const values = who?.[what]
  return what === 'recovery' ? values?.pop() : values?.at(-1)
}

/** The link a route is for, of whoever has one; but an account that loses its last change loses its sessions, and few would be left. */
function linkFor(path: string, who: Persona | undefined, personas: readonly Persona[]): string | undefined {
  const purpose = path.split('/').find((segment) => Object.values(segments).includes(segment)) ?? ''
  const others = purpose === segments.notice ? [] : personas
  return who?.links[purpose] || others.find(({ links }) => links[purpose])?.links[purpose]
}

function credential(name: string, value: string): string {
  return name === 'Authorization' && /^[\w-]+\.[\w-]+\.|^no-/.test(value) ? `Bearer ${value}` : value
}

function pathOf({ path, parameters }: Wish, fill: Fill): string {
  let next = 0
  return path.replace(/:\w+/g, () => {
    const { value, raw } = parameters[next++] ?? { value: '', raw: true }
    return raw ? fill(value) : escaped(fill(value))
  })
}

function escaped(text: string): string {
  return encodeURIComponent(text.toWellFormed())
}

/** As bytes of UTF-8, one character each, and without what ends a header. */
function headerText(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '?')
}

function targetText(text: string): string {
  return Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[^\x21-\xff]/g, (character) => escaped(character))
}

// ---- bodies ----------------------------------------------------------------------------------------------------------

function written(body: Body, fill: Fill): { type: string | null; bytes: Buffer | null } {
  switch (body.kind) {
    case 'none':
      return { type: null, bytes: null }
    case 'json':
      return { type: 'application/json', bytes: jsonBytes(JSON.stringify(filled(body.value, fill)) ?? 'null', body.twist) }
    case 'form': {
      const fields = body.fields.map(({ name, value }) => `${escaped(name)}=${escaped(fill(value))}`)
      return { type: 'application/x-www-form-urlencoded', bytes: Buffer.from(fields.join('&')) }
    }
    case 'text':
      return { type: 'text/plain', bytes: Buffer.from(body.text) }
    case 'bytes':
      return { type: 'application/json', bytes: Buffer.from(body.bytes) }
  }
}

function filled(value: unknown, fill: Fill): unknown {
  if (value instanceof Live) return fill(value)
  if (Array.isArray(value)) return value.map((item) => filled(item, fill))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, fill)]))
}

function jsonBytes(json: string, twist: Twist | null): Buffer {
  const isObject = json.startsWith('{') && json.length > 2
  switch (twist) {
    case null:
      return Buffer.from(json)
    case 'prototype keys': {
      const more = '{"__proto__":{"polluted":1,"isAdmin":true},"constructor":{"prototype":{"polluted":1}},"toString":1'
      return Buffer.from(isObject ? `${more},${json.slice(1)}` : `${more}}`)
    }
    case 'keys twice':
      return Buffer.from(isObject ? `${json.slice(0, -1)},${json.slice(1)}` : json + json)
    case 'cut':
      return Buffer.from(json.slice(0, Math.ceil(json.length / 2)))
    case 'deep':
      return Buffer.from(`${'{"a":['.repeat(1_200)}${json}${']}'.repeat(1_200)}`)
    case 'huge':
      return Buffer.from(isObject ? `{"padding":"${'x'.repeat(20_000)}",${json.slice(1)}` : JSON.stringify('x'.repeat(20_000)))
    case 'byte order mark':
      return Buffer.from(`\ufeff${json}`)
    case 'utf-16':
      return Buffer.from(json, 'utf16le')
  }
}

// ---- the wire --------------------------------------------------------------------------------------------------------

/** Longer than our own deadline for a body that does not come. */
const hungAfterMs = 25_000

export function poolTo(origin: string): Pool {
  return new Pool(origin, { connections: 8, pipelining: 1, headersTimeout: hungAfterMs, bodyTimeout: hungAfterMs })
}

/** Null: a broken request that a server may leave without an answer. */
export function send(pool: Pool, { port }: FuzzHost, asked: Asked): Promise<Answered | null> {
  return asked.quirk === null ? sendWhole(pool, asked) : sendRaw(port, asked, asked.quirk)
}

async function sendWhole(pool: Pool, { method, target, headers, body }: Asked): Promise<Answered> {
  // This client sends one Host, and trips over what begins like an address of IPv6: see the quirk for that.
  const isSent = ([name, value]: [string, string], index: number) =>
    name !== 'Host' || (!value.startsWith('[') && headers.findIndex(([other]) => other === 'Host') === index)
  const response = await pool.request({ method: method as 'GET', path: target, headers: headers.filter(isSent).flat(), body }) // any method's name
  return { status: response.statusCode, headers: response.headers, text: await response.body.text() }
}

/** One connection, these bytes, and what comes back until the server ends it. */
function sendRaw(port: number, asked: Asked, quirk: Quirk): Promise<Answered | null> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' })
    const chunks: Buffer[] = []
    const isShort = unanswered.has(quirk)
    socket.setTimeout(isShort ? 30 : hungAfterMs, () => (isShort ? socket.destroy() : socket.destroy(new Error('no answer in time'))))
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? undefined : reject(error),
    )
    socket.on('close', () => resolve(parsed(Buffer.concat(chunks).toString('latin1'))))
    socket.write(rawBytes(asked, quirk))
  })
}

/** What leaves the server waiting for more. */
const unanswered: ReadonlySet<Quirk> = new Set<Quirk>(['length too large', 'half a request', 'broken chunks'])

interface Raw {
  line: string
  headers: [name: string, value: string][]
  end: Buffer
}

function rawBytes({ method, target, headers, body }: Asked, quirk: Quirk): Buffer {
  const end = body ?? Buffer.alloc(0)
  const own: Raw['headers'] = [
    ['Host', 'localhost'],
    ['Connection', 'close'],
    ['Content-Length', String(end.length)],
  ]
  const raw: Raw = { line: `${method} ${target} HTTP/1.1`, headers: [...own, ...headers.filter(([name]) => name !== 'Host')], end }
  spoil[quirk](raw)
  const head = [raw.line, ...raw.headers.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n')
  const bytes = Buffer.concat([Buffer.from(head, 'latin1'), raw.end])
  return quirk === 'half a request' ? bytes.subarray(0, raw.line.length + 12) : bytes
}

const spoil: Readonly<Record<Quirk, (raw: Raw) => void>> = {
  'length too large': (raw) => set(raw, 'Content-Length', String(raw.end.length + 100)),
  'length too small': (raw) => set(raw, 'Content-Length', String(Math.max(0, raw.end.length - 3))),
  'length negative': (raw) => set(raw, 'Content-Length', '-1'),
  'length twice': (raw) => set(raw, 'Content-Length', String(raw.end.length), String(raw.end.length + 1)),
  'length and chunks': ({ headers }) => void headers.push(['Transfer-Encoding', 'chunked']),
  'broken chunks': (raw) => {
    set(raw, 'Content-Length')
    raw.headers.push(['Transfer-Encoding', 'chunked'])
    raw.end = Buffer.concat([Buffer.from('zz\r\n'), raw.end])
  },
  'control characters in a header': ({ headers }) => void headers.push(['X-Odd', 'a\0b\u0007']),
  'a header without a colon': ({ headers }) => void headers.push(['X-Odd\r\nwithout a colon', '']),
  'a folded header': ({ headers }) => void headers.push(['Accept-Language', 'en\r\n pt-BR']),
  'a flood of headers': ({ headers }) => {
    for (let index = 0; index < 300; index++) headers.push([`X-${index}`, 'y'.repeat(20)])
  },
  'no host': (raw) => set(raw, 'Host'),
  'a host that is none': (raw) => set(raw, 'Host', '[::1'),
  'a target in absolute form': (raw) => {
    raw.line = raw.line.replace(' ', ' http://evil.test')
  },
  'a target with blanks': (raw) => {
    raw.line = raw.line.replace(/ HTTP/, ' and more HTTP')
  },
  'HTTP/1.0': (raw) => {
    raw.line = raw.line.replace(/1\.1$/, '1.0')
  },
  'HTTP/9.9': (raw) => {
    raw.line = raw.line.replace(/1\.1$/, '9.9')
  },
  'half a request': () => undefined,
}

function set(raw: Raw, name: string, ...values: string[]): void {
  raw.headers = [...raw.headers.filter(([other]) => other !== name), ...values.map((value): [string, string] => [name, value])]
}

function parsed(text: string): Answered | null {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0)
  if (status === 0) return null
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  )
  return { status, headers, text: Buffer.from(rest.join('\r\n\r\n'), 'latin1').toString('utf8') }
}
