import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'undici'
import { isQuick } from './quick'

/** The system's browser, driven by WebDriver BiDi (https://www.w3.org/TR/webdriver-bidi/), which it speaks itself. */
export const firefoxPath = process.env.FIREFOX || '/usr/bin/firefox-esr'
export const hasFirefox = !isQuick && existsSync(firefoxPath)

/** A browser in the hands of a test. */
export interface Driven {
  /** A person, with cookies of their own. */
  person(): Promise<Person>
  close(): Promise<void>
}

export interface Person {
  tab(): Promise<Tab>
}

export interface Tab {
  /** Resolves when the page has loaded. */
  goto(url: string): Promise<void>
  /** What a JavaScript expression is in the page; it must be JSON. */
  evaluate<T>(expression: string): Promise<T>
  /** Clicks the element as a person does, and resolves when the page that comes of it has loaded. */
  click(selector: string): Promise<void>
}

/** Nothing of Firefox's own may look for anything outside of this machine. */
const preferences = {
  'app.normandy.enabled': false,
  'app.update.disabledForTesting': true,
  'browser.region.network.url': '',
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.systemAddon.update.enabled': false,
  'extensions.update.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'services.settings.server': 'data:,#remote-settings-dummy/v1',
  'toolkit.telemetry.server': 'data:,',
}

/** Starts a Firefox without a window and with an empty profile. */
export async function launchFirefox(): Promise<Driven> {
  const profile = await mkdtemp(join(tmpdir(), 'doorward-firefox-'))
  const lines = Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`)
  await writeFile(join(profile, 'user.js'), lines.join(''))
  const options = ['--headless', '--no-remote', '--profile', profile, '--remote-debugging-port', '0']
  const child = spawn(firefoxPath, options, { env: { ...process.env, HOME: profile }, stdio: ['ignore', 'ignore', 'pipe'] })
  const bidi = await connect(await addressOf(child))
  await bidi.send('session.new', { capabilities: {} })
  await bidi.send('session.subscribe', { events: ['browsingContext.load', 'browsingContext.navigationFailed'] })
  return {
    async person() {
      const { userContext } = await bidi.send<{ userContext: string }>('browser.createUserContext', {})
      return { tab: () => openTab(bidi, userContext) }
    },
    async close() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      bidi.close()
      child.kill()
      await ended
      await rm(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Firefox prints it. */
function addressOf({ stderr }: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = ''
    const late = setTimeout(() => reject(new Error(`Firefox did not start within 60 s: ${printed}`)), 60_000)
    stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
      const address = /WebDriver BiDi listening on (ws:\S+)/.exec(printed)?.[1]
      if (address === undefined) return
      clearTimeout(late)
      resolve(`${address}/session`)
    })
  })
}

interface Bidi {
  send<T = object>(method: string, parameters: object): Promise<T>
  /** Resolves at the next event of this tab: true when it has loaded, false when it cannot be. */
  loaded(context: string): Promise<boolean>
  close(): void
}

interface Message {
  readonly id?: number | null
  readonly error?: string
  readonly message?: string
  readonly result?: never
  readonly method?: string
  readonly params?: { readonly context?: string }
}

async function connect(address: string): Promise<Bidi> {
  const socket = new WebSocket(address)
  const asked = new Map<number, { resolve(result: never): void; reject(error: Error): void }>()
  const waiting: { context: string; resolve(isLoaded: boolean): void }[] = []
  let last = 0
  socket.addEventListener('message', ({ data }) => {
    const { id, error, message, result, method, params } = JSON.parse(String(data)) as Message // as the protocol says
    const question = typeof id === 'number' ? asked.get(id) : undefined
    if (question) {
      asked.delete(id as number) // just looked up
      if (error === undefined) question.resolve(result as never)
      else question.reject(new Error(`${error}: ${message}`))
    }
    const index = method === undefined ? -1 : waiting.findIndex(({ context }) => context === params?.context)
    if (index >= 0) waiting.splice(index, 1)[0]?.resolve(method === 'browsingContext.load')
  })
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve)
    socket.addEventListener('error', () => reject(new Error(`there is no WebDriver BiDi at ${address}`)))
  })
  return {
    send: (method, params) =>
      new Promise((resolve, reject) => {
        last += 1
        asked.set(last, { resolve, reject })
        socket.send(JSON.stringify({ id: last, method, params }))
      }),
    loaded: (context) => new Promise((resolve) => waiting.push({ context, resolve })),
    close: () => socket.close(),
  }
}

async function openTab(bidi: Bidi, userContext: string): Promise<Tab> {
  const { context } = await bidi.send<{ context: string }>('browsingContext.create', { type: 'tab', userContext })
  async function evaluate<T>(expression: string): Promise<T> {
    const asked = { expression: `JSON.stringify(${expression})`, target: { context }, awaitPromise: false }
    const answer = await bidi.send<{ type: string; result?: { value?: string } }>('script.evaluate', asked)
    if (answer.type !== 'success') throw new Error(`${expression} fails in Firefox: ${JSON.stringify(answer)}`)
    return JSON.parse(answer.result?.value ?? 'null') as T // what the test says of its own expression
  }
  return {
    evaluate,
    async goto(url) {
      await bidi.send('browsingContext.navigate', { context, url, wait: 'complete' })
    },
    async click(selector) {
      const locator = { type: 'css', value: selector }
      const { nodes } = await bidi.send<{ nodes: { sharedId: string }[] }>('browsingContext.locateNodes', { context, locator })
      const [node] = nodes
      if (!node) throw new Error(`there is no ${selector} at ${await evaluate('location.href')}`)
      await evaluate(`document.querySelector(${JSON.stringify(selector)}).scrollIntoView({ block: 'center' })`)
      const origin = { type: 'element', element: { sharedId: node.sharedId } }
      const actions = [
        { type: 'pointerMove', x: 0, y: 0, origin },
        { type: 'pointerDown', button: 0 },
        { type: 'pointerUp', button: 0 },
      ]
      const late = new Promise<never>((_, reject) => {
        setTimeout(() => reject(new Error(`nothing loaded within 15 s after a click on ${selector}`)), 15_000).unref()
      })
      const loaded = bidi.loaded(context)
      await bidi.send('input.performActions', { context, actions: [{ type: 'pointer', id: 'mouse', actions }] })
      if (!(await Promise.race([loaded, late]))) throw new Error(`a click on ${selector} leads to what cannot be loaded`)
    },
  }
}
