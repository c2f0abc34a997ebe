import { openInMemory, openOnDisk } from '../store/open-sqlite.ts'
import { logSuite } from './suite.ts'

logSuite('sqlite in memory', openInMemory)
logSuite('sqlite on disk', openOnDisk)
