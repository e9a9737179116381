import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import supertest from 'supertest'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { browserOf } from '../support/browser'
import { freePort } from '../support/free-port'
import { onTerminal } from '../support/terminal'
import { ensureBuilt, root } from './built-package'

// README.md's first app and the commands below it, as they stand there, in a folder of its own: only the port is another, and what
// `npm install` brings is here.
const folder = mkdtempSync(join(tmpdir(), 'doorward-readme-'))
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const page = readFileSync(join(root, 'docs/getting-started.md'), 'utf8')
const blockOf = (text: string, language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(text)?.[1] ?? ''

let app: ChildProcess | undefined
let printed = ''
let warned = ''
let url = ''

beforeAll(async () => {
  ensureBuilt()
  const port = String(await freePort())
  url = `http://localhost:${port}`
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules/doorward'))
  chmodSync(join(root, 'dist/cli.js'), 0o755) // npm does
  symlinkSync('../doorward/dist/cli.js', join(folder, 'node_modules/.bin/doorward'))
  const [install = '', ...commands] = blockOf(readme, 'sh').trimEnd().replaceAll('3000', port).split('\n')
  for (const name of install.replace('npm install doorward ', '').split(' '))
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  writeFileSync(join(folder, 'app.mjs'), blockOf(readme, 'js').replaceAll('3000', port))
  const { PATH, HOME } = process.env
  const options = { cwd: folder, env: { PATH, HOME } }
  const start = commands.pop() ?? ''

  const set = await onTerminal(['bash', '-ec', commands.join('\n')], { ...options, answers: ['', '', ''] })
  expect(set).toMatchObject({ code: 0, left: [] })
  const child = spawn('bash', ['-c', `exec ${start}`], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  app = child
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk))
  child.stderr.on('data', (chunk) => (warned += chunk))
  await until(async () => (await fetch(`${url}/hello`)).status === 401)
}, 300_000)

afterAll(async () => {
  if (app?.exitCode === null && app.kill()) await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
})

test('from an empty folder to a person in a guarded route, by what README.md says', async () => {
  const visitor = browserOf(url)
  const open = (path: string) => visitor.get(path).set('Accept', 'text/html').set('Sec-Fetch-Mode', 'navigate').redirects(5)
  const send = (path: string, fields: object) => visitor.post(path).set('Accept', 'text/html').set('Origin', url).type('form').send(fields)

  const signIn = await open('/hello')
  const [, signUp = ''] = /href="([^"]*\/signup[^"]*)"/.exec(signIn.text) ?? []
  const form = await open(signUp.replaceAll('&amp;', '&'))
  const sent = await send('/auth/signup', { ...hiddenFields(form.text), email: 'ada@example.com', password: 'three quiet green rivers' })
  expect(sent.status).toBe(303)
  await until(async () => /\/auth\/activate\/\S+/.test(printed))
  const [link = ''] = /\/auth\/activate\/\S+/.exec(printed) ?? []
  const activated = await send(link, hiddenFields((await open(link)).text))
  const last = await open(String(activated.headers.location).replace(url, ''))

  expect(last.body).toEqual({ hello: 'ada@example.com' })
  expect((await supertest(url).get('/hello')).status).toBe(401)
}, 60_000)

test('nothing of it is a warning', () => {
  expect(warned).not.toMatch(/warn|doorward:/i)
})

test('docs/getting-started.md shows the same, and the module that init writes', () => {
  expect(blockOf(page, 'js')).toBe(blockOf(readme, 'js'))
  expect(blockOf(page, 'sh')).toBe(blockOf(readme, 'sh'))
  expect(page).toContain(`\`\`\`js\n${readFileSync(join(folder, 'auth.mjs'), 'utf8')}\`\`\``)
})

function hiddenFields(html: string): Record<string, string> {
  const fields = [...html.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
  return Object.fromEntries(fields.map(([, name, value]) => [name, String(value).replaceAll('&amp;', '&')]))
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const holds = async () => {
    if (!(await isSo())) throw new Error(`It did not come to pass. The app printed:\n${printed}`)
  }
  await vi.waitFor(holds, { timeout: 30_000, interval: 100 })
}
