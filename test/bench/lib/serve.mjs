/** A server of a bench, in its own process: it may only be what a host would run, so this is all that is added to it. */
import { createServer } from 'node:http'

/** Listens on the loopback, builds the app for that origin, says `READY origin`, and answers what the bench asks. */
export async function serve(makeApp) {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  server.keepAliveTimeout = 600_000
  // A connection waits for its first request until it is its server's turn.
  server.headersTimeout = 0
  server.requestTimeout = 0
  const origin = `http://127.0.0.1:${server.address().port}`
  server.on('request', await makeApp(origin))
  process.on('message', (question) => process.send(answers[question]()))
  process.once('disconnect', () => process.exit())
  console.log(`READY ${origin}`)
}

const answers = {
  /** getrusage of the whole process: its loop, libuv's threads, the collector's. */
  usage() {
    const { user, system } = process.cpuUsage()
    const { rss, heapUsed } = process.memoryUsage()
    return { cpuMicros: user + system, rssBytes: rss, heapBytes: heapUsed }
  },
  /** Needs `execArgv: ['--expose-gc']`. */
  gc() {
    for (let turn = 0; turn < 4; turn++) globalThis.gc()
    return answers.usage()
  },
}
