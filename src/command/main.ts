import { once } from 'node:events'
import { run } from './run'
import { terminalOf } from './terminal'

// Standard output is for the result: what the app says while it starts goes elsewhere.
console.log = console.info = console.debug = console.error

void run(process.argv.slice(2), {
  env: process.env,
  folder: process.cwd(),
  out: (text) => process.stdout.write(text) || once(process.stdout, 'drain'),
  err: (text) => process.stderr.write(text),
  terminal: terminalOf(process.stdin, process.stderr),
  stdin: () => process.stdin,
}).then((exitCode) => {
  // The app may keep handles open, a pool of connections say.
  process.stdout.write('', () => process.exit(exitCode))
})
